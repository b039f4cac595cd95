//! Tests on mounted file systems.

mod reader;
