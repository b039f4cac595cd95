//! Tests of the command as a user runs it.

mod alignment;
mod bad_input;
mod check;
mod check_guest;
mod command;
mod copies;
mod demo;
mod drives;
mod guard;
mod lab;
mod map;
mod plan;
mod plan_stack;
mod plot;
mod probe;
mod serve;
mod sim;
mod sweep;
mod today;
mod validate;
mod volume;
mod volume_faults;
