//! The figures of each device of `traxtent sim`, in runs of several drives or arrays.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::shared_data;

use super::command::{json, prints};

/// The number of requests that the tests exclude.
const WARMUP: usize = 20;

/// Writes a trace for two devices, of which the second has a third of the requests.
fn trace(path: &Path) -> String {
    let line = |i: u64| {
        let (device, sectors) = if i % 3 == 2 { (1, 64) } else { (0, 8) };
        format!("{i}0.0 {device} {} {sectors} 1\n", i * 3001 % 100_000)
    };
    fs::write(path, (0..300).map(line).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Are the figures of each device those of its requests in the log, without the warm-up, over the
/// time of the whole run? Do the numbers of requests and the throughputs add up to the total?
#[test]
fn figures_of_each_device() {
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(&folder.path().join("two.trace"));
    let log = folder.path().join("log.csv");
    let warmup = WARMUP.to_string();
    let sim = ["sim", "atlas10k", &trace, "--drive", "ibm18es"];
    let options = ["--warmup", &warmup, "--log", log.to_str().unwrap()];
    let total = json(&[&sim[..], &options, &["--json"]].concat());

    let log = fs::read_to_string(log).unwrap();
    let names: Vec<&str> = log.lines().next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|known| *known == name).unwrap();
    let devices = total["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for (index, (device, name)) in devices.iter().zip(["atlas10k", "ibm18es"]).enumerate() {
        assert_eq!(
            (&device["device"], &device["name"]),
            (&index.into(), &name.into())
        );
        let number_of_device = index.to_string();
        let rows = log
            .lines()
            .skip(1)
            .map(|row| row.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|row| row[column("device")] == number_of_device);
        let response = |row: Vec<&str>| row[column("response_ms")].parse::<f64>().unwrap();
        let mut times: Vec<f64> = rows.map(response).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len() as f64;
        assert_eq!(number(&device["requests"]), count);
        let mean = times.iter().sum::<f64>() / count;
        assert!(
            (number(&device["response_ms"]["mean"]) - mean).abs() < 1e-6,
            "{device}"
        );
        assert_eq!(
            number(&device["response_ms"]["max"]),
            times[times.len() - 1]
        );
        assert_eq!(device["simulated_ms"], total["simulated_ms"]);
        let rate = count / number(&total["simulated_ms"]) * 1e3;
        assert!(
            (number(&device["requests_per_s"]) - rate).abs() < 1e-6,
            "{device}"
        );
    }
    for key in ["requests", "requests_per_s", "mb_per_s"] {
        let sum: f64 = devices.iter().map(|device| number(&device[key])).sum();
        assert!((sum - number(&total[key])).abs() < 1e-6, "{key}: {sum}");
    }
    assert_eq!(total["requests"], 300 - WARMUP);

    // The text ends with the same figures as a table.
    let text = prints(&[&sim[..], &["--warmup", &warmup]].concat());
    let (_, table) = text.rsplit_once("\n\n").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..3], ["device", "name", "requests"]);
    assert_eq!(rows.len(), 3);
    for (row, device) in rows[1..].iter().zip(devices) {
        let response = &device["response_ms"];
        assert_eq!(row[0], device["device"].to_string());
        assert_eq!(row[1], device["name"]);
        assert_eq!(row[2], device["requests"].to_string());
        assert_eq!(row[3], format!("{:.2}", number(&device["requests_per_s"])));
        assert_eq!(row[4], format!("{:.3}", number(&device["mb_per_s"])));
        assert_eq!(row[5], format!("{:.3}", number(&response["mean"])));
        assert_eq!(row[8], format!("{:.3}", number(&response["p99"])));
    }
}

/// Has a run of a single drive no table of devices? Do the rows of a sweep over drives, each of
/// which is a run of its own, have none either?
#[test]
fn a_single_device_has_no_table() {
    let total = json(&["sim", "atlas10k", "random,count=50", "--json"]);
    assert_eq!(total.get("devices"), None);
    let text = prints(&["sim", "atlas10k", "random,count=50"]);
    assert!(!text.contains("device"), "{text}");
    let drives = ["sim", "--drives", "atlas10k,ibm18es", "random,count=50"];
    let rows = json(&[&drives[..], &["--json"]].concat());
    let rows = rows.as_array().unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.get("devices").is_none()));
}

/// Are the devices of DiskSim's systems the drives, or the arrays if there are any? With several
/// seeds, do the numbers of requests of the devices add up to that of the run? A device without
/// requests has a row of zeros.
#[test]
fn devices_of_disksim() {
    let data = shared_data!("disksim");
    for (name, devices) in [("synthopen", 3), ("syntharrays", 4)] {
        let target = format!("disksim:{}", data.join(format!("{name}.parv")).display());
        let sim = [
            "sim",
            &target,
            "--set",
            "workload.count=500",
            "--seeds",
            "3",
            "--quiet",
        ];
        let total = json(&[&sim[..], &["--json"]].concat());
        let of_devices = total["devices"].as_array().unwrap();
        assert_eq!(of_devices.len(), devices, "{name}");
        let mean = |one: &Value| number(&one["requests"]["mean"]);
        let sum: f64 = of_devices.iter().map(mean).sum();
        assert!((sum - mean(&total)).abs() < 1e-6, "{name}: {sum}");
        for one in of_devices {
            let response = number(&one["response_ms"]["mean"]["mean"]);
            assert_eq!(response > 0.0, mean(one) > 0.0, "{name}: {one}");
        }
    }
}
