//! A recipe as a shell script, with the tests that end it before anything is written.

use super::{Recipe, Step};
use crate::plan::fix::quoted;

impl Recipe {
    /// Adds the commands that end the script if a device that was blank no longer is: the kernel
    /// can give its name to another disk. `paths` are shell words.
    ///
    /// `blkid` exits with 2 if it finds nothing, with 0 if it finds content, and with 8 if it finds
    /// content of several kinds, of which it prints none. For a device that it cannot read, it also
    /// exits with 2.
    pub fn test_blank(&mut self, paths: impl Iterator<Item = String>) {
        let commands: Vec<String> = paths
            .flat_map(|path| {
                [
                    refuse_unless(&format!("-r {path}"), &path, "cannot be read"),
                    format!(
                        "found=0; blkid --probe {path} >/dev/null 2>&1 || found=$?\n\
                         case $found in\n  2) ;;\n  0 | 8) {} ;;\n  *) {} ;;\nesac",
                        end_with(&path, "is no longer blank; plan again"),
                        end_with(
                            &path,
                            "blkid cannot tell whether it is blank; is it installed?"
                        )
                    ),
                ]
            })
            .collect();
        if !commands.is_empty() {
            let step = Step {
                what: "Nothing has been written since the plan was made".to_owned(),
                program: "blkid",
                commands,
            };
            self.steps.insert(0, step);
        }
    }

    /// Adds the commands that end the script if a disk is no longer the one of the plan: the kernel
    /// can give its name to another disk. For each disk, `identities` has the path as a shell word,
    /// the kernel's file that identifies it, relative to the directory of the device in sysfs, and
    /// the content of this file without the last line break.
    pub fn test_identity(&mut self, identities: impl Iterator<Item = (String, String, String)>) {
        let commands: Vec<String> = identities
            .map(|(path, file, content)| {
                let device = format!("$(basename \"$(readlink -f {path})\")");
                let content = quoted(&content);
                refuse_unless(
                    &format!("\"$(cat \"/sys/class/block/{device}/{file}\")\" = {content}"),
                    &path,
                    "is no longer the same disk; plan again",
                )
            })
            .collect();
        if !commands.is_empty() {
            let step = Step {
                what: "The names of disks with content have not changed".to_owned(),
                program: "cat",
                commands,
            };
            self.steps.insert(0, step);
        }
    }

    /// Adds the command that ends the script if its list of bad blocks is missing, before anything
    /// is written.
    pub fn test_list(&mut self) {
        let Some(list) = &self.bad_blocks else {
            return;
        };
        let step = Step {
            what: "The list of bad blocks is there".to_owned(),
            program: "test",
            commands: vec![refuse_unless(
                &format!("-r {}", list.file),
                &list.file,
                "cannot be read; plan with --output, and keep the directory in its place",
            )],
        };
        self.steps.insert(0, step);
    }

    /// Returns the recipe as a shell script.
    pub fn script(&self) -> String {
        let mut text = "#!/bin/sh -e\n".to_owned();
        for note in &self.notes {
            // A path can contain line breaks.
            text += &format!("# {}\n", note.replace('\n', "\n# "));
        }
        // `sh stack.sh` ignores the option in the first line.
        text += "set -eu\n";
        for step in &self.steps {
            text += &format!("\n# {}\n{}\n", step.what, step.commands.join("\n"));
        }
        text
    }
}

/// Returns a command that ends the script with an error about a path, which is a shell word, unless
/// a condition of `test` holds.
pub fn refuse_unless(condition: &str, path: &str, why: &str) -> String {
    format!("test {condition} || {{ {}; }}", end_with(path, why))
}

/// Returns the commands that end the script with an error about a path, which is a shell word.
fn end_with(path: &str, why: &str) -> String {
    format!("echo {path}': {why}' >&2; exit 1")
}
