//! Tests of the checker against what real tools write and say.

mod archive;
mod arrays;
mod encryption;
mod file_systems;
mod files;
mod hostile;
mod image;
mod machine;
mod rules;
mod tables;
mod volumes;
