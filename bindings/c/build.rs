//! Gives the shared library a name for the dynamic linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtraxtent_c.so");
}
