//! Parquet files, read back by the crate that wrote them.

use std::fs::{self, File};
use std::path::Path;

use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::command::prints;

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

/// Runs a command twice, and returns the text of its CSV file and a reader of its Parquet file.
fn both(folder: &Path, arguments: &[&str]) -> (String, SerializedFileReader<File>) {
    let [csv, parquet] = ["a.csv", "a.parquet"].map(|name| folder.join(name));
    for path in [&csv, &parquet] {
        prints(&[arguments, &[path.to_str().unwrap()]].concat());
    }
    (fs::read_to_string(csv).unwrap(), open(&parquet))
}

/// Compares each row of a Parquet file with the same row of a CSV file without quotes.
fn assert_same(csv: &str, parquet: &SerializedFileReader<File>) {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let schema = parquet.metadata().file_metadata().schema_descr();
    let known: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    assert_eq!(known, names);
    let mut rows = parquet.get_row_iter(None).unwrap();
    for line in lines {
        let row = rows.next().expect("as many rows").unwrap();
        for (text, (name, field)) in line.split(',').zip(row.get_column_iter()) {
            match field {
                Field::Null => assert_eq!(text, "", "{name}"),
                Field::Long(value) => assert_eq!(text.parse(), Ok(*value), "{name}"),
                Field::Double(value) => assert_eq!(text.parse(), Ok(*value), "{name}"),
                Field::Str(value) => assert_eq!(text, value, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
    assert!(rows.next().is_none());
}

/// Does a log have the same content as CSV, with times as numbers, their units, and a column of
/// measured times that is numeric although it is empty?
#[test]
fn request_log() {
    let folder = tempfile::tempdir().unwrap();
    let sim = [
        "sim",
        "atlas10k",
        "random,read=66%,count=3000",
        "--seed",
        "5",
    ];
    let (csv, parquet) = both(folder.path(), &[&sim[..], &["--log"]].concat());
    assert_same(&csv, &parquet);
    assert!(csv.lines().skip(1).all(|row| row.ends_with(",,ok")));
    let metadata = parquet.metadata().file_metadata();
    let types = metadata.schema_descr().columns().iter();
    let of = |name: &str| {
        types
            .clone()
            .find(|column| column.name() == name)
            .unwrap()
            .physical_type()
    };
    assert_eq!(of("measured_ms"), Type::DOUBLE);
    assert_eq!(of("lbn"), Type::INT64);
    assert_eq!(of("status"), Type::BYTE_ARRAY);
    let facts = metadata.key_value_metadata().unwrap();
    let fact = |key: &str| {
        let found = facts.iter().find(|fact| fact.key == key);
        found.unwrap().value.as_deref().unwrap().to_owned()
    };
    assert_eq!(
        (fact("drive"), fact("seed")),
        ("atlas10k".to_owned(), "5".to_owned())
    );
    let units: serde_json::Value = serde_json::from_str(&fact("units")).unwrap();
    assert_eq!(units["response_ms"], "ms");
}

/// Does a log of several runs have the same content as CSV, in more than one row group?
#[test]
fn log_of_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let sim = [
        "sim",
        "--drives",
        "atlas10k,cheetah15k7",
        "sequential,count=66000",
        "--set",
        "mechanics.write_settle_ms=0.5",
        "--log",
    ];
    let (csv, parquet) = both(folder.path(), &sim);
    assert!(parquet.metadata().num_row_groups() > 1);
    assert_same(&csv, &parquet);
}

/// Does the table of results have the same content as CSV?
#[test]
fn summary() {
    let folder = tempfile::tempdir().unwrap();
    let sim = [
        "sim",
        "atlas10k",
        "random,count=500",
        "--seeds",
        "3",
        "--summary",
    ];
    let (csv, parquet) = both(folder.path(), &sim);
    // The workload is the only text with commas.
    let plain: String = csv
        .split('"')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            0 => part.to_owned(),
            _ => part.replace(',', ";"),
        })
        .collect();
    let mut rows = parquet.get_row_iter(None).unwrap();
    let mut count = 0;
    for line in plain.lines().skip(1) {
        let row = rows.next().unwrap().unwrap();
        for (text, (name, field)) in line.split(',').zip(row.get_column_iter()) {
            let shown = match field {
                Field::Null => String::new(),
                Field::Long(value) => value.to_string(),
                Field::Double(value) => value.to_string(),
                Field::Str(value) => value.replace(',', ";"),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(text, shown, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 3);
    assert!(rows.next().is_none());
}
