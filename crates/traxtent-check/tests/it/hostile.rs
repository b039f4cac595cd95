//! Images that are truncated or changed at random.

use std::rc::Rc;

use testkit::tool;
use traxtent_check::drive::StatedDrive;
use traxtent_check::examine::{StackRoot, examine};
use traxtent_check::{Stack, rules};

use crate::image::{Image, MIB};

fn examine_bytes(bytes: Vec<u8>) -> Stack {
    let root = StackRoot {
        name: "image".to_owned(),
        node: None,
        disk: StatedDrive::default().image(),
        is_sector_stated: false,
        limits: None,
        bytes: bytes.len() as u64,
        source: Ok(Rc::new(bytes)),
    };
    examine(vec![root], None)
}

/// Is the stack of every truncated or changed image consistent, and can the changed ones be checked
/// without a panic?
#[test]
fn truncated_and_changed_images() {
    let (sfdisk, mke2fs) = (tool!("sfdisk"), tool!("mke2fs"));
    let mut images = Vec::new();
    for label in ["gpt", "dos"] {
        let image = Image::new(4 * MIB);
        let script = format!("label: {label}\nstart=2048,size=1024\nstart=4096,size=2048\n");
        image.run(&sfdisk, &["-q", "@"], &script);
        images.push(std::fs::read(&image.path).unwrap());
    }
    let image = Image::new(MIB);
    image.run(&mke2fs, &["-q", "-F", "@"], "");
    images.push(std::fs::read(&image.path).unwrap());

    // Marsaglia's xorshift generator, which makes the changes repeatable.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for image in images {
        for cut in [
            0,
            1,
            511,
            512,
            513,
            1024,
            1536,
            4096,
            17_407,
            17_408,
            MIB as usize - 1,
        ] {
            examine_bytes(image[..cut.min(image.len())].to_vec())
                .check()
                .unwrap();
        }
        for _ in 0..testkit::repeats(300) {
            let mut changed = image.clone();
            for _ in 0..1 + random(4) {
                let at = random(4096);
                changed[at] = [0, 1, 0x7f, 0x80, 0xff, changed[at] ^ 1 << random(8)][random(6)];
            }
            let stack = examine_bytes(changed);
            stack.check().unwrap();
            rules::check(&stack, None);
        }
    }
}
