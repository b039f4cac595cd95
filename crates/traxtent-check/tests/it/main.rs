//! Tests of the checker with images that real tools write, and with those tools' output.

mod archive;
mod arrays;
mod badblocks;
mod drives;
mod encryption;
mod file_systems;
mod files;
mod fixes;
mod gallery;
mod hostile;
mod image;
mod machine;
mod native;
mod recipes;
mod remnants;
mod rules;
mod tables;
mod volumes;
