//! The test that the names of new layers are free.

use super::{ARRAY, GROUP, OPENED, RecipeBuilder, Step};

impl RecipeBuilder<'_> {
    /// Adds the step that ends the script if the name of an array, a volume group or an opened LUKS
    /// device is in use, before anything is written.
    pub(super) fn test_names(&mut self) {
        let refuse = |name: &str, why: &str| format!("{{ echo '{name}: {why}' >&2; exit 1; }}");
        let mut commands = Vec::new();
        if self.want.raid.is_some() {
            let why = "already exists; stop this array, or change the name in this script";
            // A node can exist without an array.
            commands.push(format!(
                "! mdadm --detail {ARRAY} >/dev/null 2>&1 || {}",
                refuse(ARRAY, why)
            ));
        }
        if self.want.lvm {
            let why = "a volume group of this name already exists; rename it, or change the name in this script";
            commands.push(format!(
                "! vgs {GROUP} >/dev/null 2>&1 || {}",
                refuse(GROUP, why)
            ));
        }
        if self.want.luks_sector.is_some() {
            let why = "already exists; close it, or change the name in this script";
            commands.push(format!("test ! -e {OPENED} || {}", refuse(OPENED, why)));
        }
        if !commands.is_empty() {
            let step = Step {
                what: "The names of the new layers are free".to_owned(),
                program: "test",
                commands,
            };
            self.recipe.steps.insert(0, step);
        }
    }
}
