//! Programs in C, compiled without a warning and linked with the library of this test.
//!
//! The compiler's sanitizers are enabled in all of them: a program fails if it accesses memory out
//! of bounds, if the library does so in a copy to or from the program's memory, or if memory is not
//! released.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A compiled program, and the directory that holds it.
pub(crate) struct Program {
    folder: TempDir,
}

/// Returns the path of a file of this crate.
pub(crate) fn crate_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Returns the directory with the library as cargo built it for this test.
pub(crate) fn library_folder() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

impl Program {
    /// Compiles a source file of this crate with the compiler `cc`.
    pub(crate) fn compile(cc: &Path, source: &str) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let status = Command::new(cc)
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g"])
            .arg("-fsanitize=address,undefined")
            .arg("-I")
            .arg(crate_path("include"))
            .arg(crate_path(source))
            // Linking with the static library takes longer; a separate test does that.
            .arg(library_folder().join("libtraxtent_c.so"))
            .arg(format!("-Wl,-rpath,{}", library_folder().display()))
            .arg("-o")
            .arg(folder.path().join("program"))
            .status()
            .unwrap();
        assert!(status.success(), "{source}");
        Program { folder }
    }

    /// Returns the path of the program.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    /// Runs the program with some arguments and input, and returns its output.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new(self.path());
        // Cargo's own path begins with a directory that may hold a library of an earlier build.
        command.env("LD_LIBRARY_PATH", library_folder());
        run(command.args(arguments), input)
    }
}

/// Runs a command with some input, and returns its output. Fails if the command fails.
pub(crate) fn run(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let text = input.to_owned();
    // The program may print more than a pipe holds before it has read all its input.
    let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let written = writer.join().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    written.unwrap();
    String::from_utf8(output.stdout).unwrap()
}
