//! Pictures.

use std::fs;

use super::command::{prints, traxtent};

/// Does the picture have the format that its name requests, with named axes?
#[test]
fn kinds() {
    if !cfg!(feature = "plot") {
        testkit::skip!("this build cannot draw pictures; rebuild it with the feature `plot`");
    }
    let folder = tempfile::tempdir().unwrap();
    let draw = |name: &str| {
        let path = folder.path().join(name);
        prints(&[
            "sim",
            "atlas10k",
            "random,count=2000",
            "--plot",
            path.to_str().unwrap(),
        ]);
        fs::read(path).unwrap()
    };
    let svg = String::from_utf8(draw("a.svg")).unwrap();
    assert!(
        svg.starts_with("<svg width=\"960\" height=\"420\""),
        "{}",
        &svg[..80]
    );
    for text in [
        "response time, ms",
        "share of requests",
        "rotation",
        "atlas10k",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let png = draw("a.png");
    assert!(png.starts_with(b"\x89PNG"));
    let reader = png::Decoder::new(std::io::Cursor::new(&png))
        .read_info()
        .unwrap();
    assert_eq!((reader.info().width, reader.info().height), (1920, 840));
}

/// Is a picture in an unknown format refused before anything is simulated?
#[test]
fn other_kinds() {
    let answer = traxtent(&[
        "sim",
        "atlas10k",
        "random,count=1000000000",
        "--plot",
        "a.jpg",
    ]);
    assert_eq!(answer.status, 2);
}
