//! Tests of the header and of the library from the point of view of a C program.

mod examples;
mod header;
mod link;
mod program;
mod queue;
mod store;
mod tracks;
