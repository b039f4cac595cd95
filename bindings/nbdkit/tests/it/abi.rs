//! Is the plugin's structure the same as in nbdkit's header?

use std::fs;
use std::mem::offset_of;
use std::process::Command;

use tempfile::TempDir;
use traxtent_nbdkit::abi::Plugin;

macro_rules! offsets {
    ($($field:ident),+ $(,)?) => {
        [$((stringify!($field), offset_of!(Plugin, $field))),+]
    };
}

/// Does every field have the same offset as in the header of the installed nbdkit, and do the
/// constants have the same values?
#[test]
fn fields_lie_where_the_header_has_them() {
    let cc = testkit::tool!("cc");
    if !std::path::Path::new("/usr/include/nbdkit-plugin.h").exists() {
        testkit::skip!("nbdkit-plugin.h is not installed (nbdkit-plugin-dev)");
    }
    let ours = offsets!(
        _struct_size,
        _api_version,
        _thread_model,
        name,
        longname,
        version,
        description,
        load,
        unload,
        config,
        config_complete,
        config_help,
        open,
        close,
        get_size,
        can_write,
        can_flush,
        is_rotational,
        can_trim,
        errno_is_preserved,
        dump_plugin,
        can_zero,
        can_fua,
        pread,
        pwrite,
        flush,
        trim,
        zero,
        magic_config_key,
        can_multi_conn,
        can_extents,
        extents,
        can_cache,
        cache,
        thread_model,
        can_fast_zero,
        preconnect,
        get_ready,
        after_fork,
        list_exports,
        default_export,
        export_description,
        cleanup,
        block_size,
    );
    let folder = TempDir::new().unwrap();
    let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
    let print_statements: String = ours
        .iter()
        .map(|(field, _)| format!("P({field})"))
        .collect();
    let text = format!(
        "#define NBDKIT_API_VERSION 2\n#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL\n\
         #include <nbdkit-plugin.h>\n#include <stdio.h>\n#include <stddef.h>\n\
         #define P(f) printf(\"%s %zu\\n\", #f, offsetof(struct nbdkit_plugin, f));\n\
         int main(void) {{ {print_statements} printf(\"model %d fua %d native %d\\n\", THREAD_MODEL, \
         NBDKIT_FLAG_FUA, NBDKIT_FUA_NATIVE); return 0; }}\n"
    );
    fs::write(&source, text).unwrap();
    let built = Command::new(cc)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let built = built.unwrap();
    let stderr = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{stderr}");
    let printed = Command::new(&program).output().unwrap().stdout;
    let theirs = String::from_utf8(printed).unwrap();
    let expected: String = ours
        .iter()
        .map(|(field, offset)| format!("{field} {offset}\n"))
        .chain(["model 3 fua 2 native 2\n".to_owned()])
        .collect();
    assert_eq!(theirs, expected);
}
