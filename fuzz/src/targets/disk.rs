//! Faults of a disk, as a line and as a scenario.

use std::sync::LazyLock;

use traxtent_model::disk::{Disk, Fault, Scenario};
use traxtent_model::profile::builtin;

use super::text;

/// A fault in one line: it is printed and parsed again, and then injected or refused.
pub(crate) fn fault(input: &[u8]) {
    let Some(text) = text(input) else { return };
    match text.parse::<Fault>() {
        Ok(fault) => {
            assert_eq!(fault.to_string().parse(), Ok(fault), "{fault}");
            let mut disk = disk();
            let outcome = disk.inject(disk.now(), fault);
            outcome.map_or_else(|error| drop(error.to_string()), drop);
        }
        Err(error) => drop(error.to_string()),
    }
}

/// A scenario: it is printed and parsed again, and then plays to its end or is refused.
pub(crate) fn scenario(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let scenario = match Scenario::from_toml(text) {
        Ok(scenario) => scenario,
        Err(error) => return drop(error.to_string()),
    };
    assert_eq!(
        Scenario::from_toml(&scenario.to_toml()).as_ref(),
        Ok(&scenario)
    );
    let mut disk = disk();
    if let Err(error) = disk.schedule_faults(&scenario) {
        return drop(error.to_string());
    }
    let mut sector = [0; 512];
    for _ in 0..3 {
        let _ = disk.write(1, &sector);
        let _ = disk.read(1, &mut sector);
    }
    while let Some(wake) = disk.next_wakeup() {
        disk.poll(wake);
    }
    let happened = std::iter::from_fn(|| disk.next_event()).count();
    assert_eq!(happened, scenario.faults.len());
}

/// Returns an idle disk whose accesses take no time.
fn disk() -> Disk {
    static DISK: LazyLock<Disk> = LazyLock::new(|| {
        let profile = builtin("instant").expect("a built-in drive");
        Disk::new(&profile).expect("a built-in drive is valid")
    });
    DISK.clone()
}
