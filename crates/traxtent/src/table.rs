//! Tables for people.

use std::io::{self, Write};

use crate::html::{escape, verdict};

/// The alignment of text in its column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Rows of text in columns that are as wide as their widest text.
pub(crate) struct Table {
    head: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table from the title and the alignment of each column.
    pub(crate) fn new<T: Into<String>>(head: impl IntoIterator<Item = (T, Side)>) -> Table {
        let head = head.into_iter();
        Table {
            head: head.map(|(title, side)| (title.into(), side)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with one text per column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// Writes the titles and the rows.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let titles: Vec<String> = self.head.iter().map(|(title, _)| title.clone()).collect();
        let lines = || std::iter::once(&titles).chain(&self.rows);
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| lines().map(|line| line[column].chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for line in lines() {
            let mut text = String::new();
            for ((cell, &width), (_, side)) in line.iter().zip(&widths).zip(&self.head) {
                let cell = match side {
                    Side::Left => format!("{cell:<width$}  "),
                    Side::Right => format!("{cell:>width$}  "),
                };
                text.push_str(&cell);
            }
            writeln!(out, "{}", text.trim_end())?;
        }
        Ok(())
    }

    /// Returns the table as HTML.
    pub(crate) fn html(&self) -> String {
        let line = |tag: &str, cells: &mut dyn Iterator<Item = &String>| {
            let cells: String = cells
                .zip(&self.head)
                .map(|(cell, (_, side))| {
                    let class = if *side == Side::Right {
                        " class=\"right\""
                    } else {
                        ""
                    };
                    match verdict(cell) {
                        Some(shown) => format!("<{tag} class=\"{cell}\">{shown}</{tag}>"),
                        None => format!("<{tag}{class}>{}</{tag}>", escape(cell)),
                    }
                })
                .collect();
            format!("<tr>{cells}</tr>\n")
        };
        let head = line("th", &mut self.head.iter().map(|(title, _)| title));
        let rows: String = self
            .rows
            .iter()
            .map(|row| line("td", &mut row.iter()))
            .collect();
        format!("<table>\n{head}{rows}</table>")
    }
}
