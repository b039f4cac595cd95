//! Serves a built-in drive as a file until the program is interrupted. With `--device`, also
//! attaches the file to a loop device.
//!
//! ```text
//! mkdir /tmp/drive
//! cargo run --release -p traxtent-server --example fuse -- atlas10k2 /tmp/drive --device
//! ```

use std::env;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use traxtent_model::profile::builtin;
use traxtent_server::fuse::Mount;
use traxtent_server::serve::{DriveServer, Settings};
use traxtent_server::service::{BlockService, Export};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [drive, directory, options @ ..] = &arguments[..] else {
        return Err("usage: fuse DRIVE DIRECTORY [--device] [--read-only]".into());
    };
    let has = |option: &str| options.iter().any(|one| one == option);
    let profile = builtin(drive).ok_or("unknown drive; name a built-in one, such as atlas10k2")?;
    let service = DriveServer::open(Settings::of(drive, profile))?;
    service.start()?;
    let export = Export {
        name: drive.clone(),
        description: String::new(),
        service: Arc::new(service),
        read_only: has("--read-only"),
    };
    let mut mount = Mount::start(&export, Path::new(directory))?;
    println!("{}", mount.file().display());
    if has("--device") {
        println!("{}", mount.attach_loop()?.display());
    }
    for _ in Signals::new([SIGINT, SIGTERM])?.forever() {
        match mount.stop() {
            Ok(()) => break,
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(export.service.stop()?)
}
