//! Rendering of pictures.
//!
//! All coordinates are whole pixels, so pictures are drawn larger than they are shown. SVG pictures
//! are drawn three times as large, which only refines their coordinates. PNG pictures are drawn and
//! stored twice as large, for screens of high density.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

use crate::{Draw, DrawError, Format, colours};

/// The font family of all text.
pub(super) const FONT: &str = "sans-serif";

const SVG_SCALE: u32 = 3;
const PNG_SCALE: u32 = 2;

/// A picture that can be drawn by any backend.
pub trait Picture {
    /// Returns the displayed width and height in pixels.
    fn size(&self) -> (u32, u32);

    /// Draws the picture on an area of `size` times `scale` pixels.
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, scale: f64)
    -> DrawResult<DB>;
}

/// The result of drawing.
pub(crate) type DrawResult<DB> =
    Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

impl<T: Picture> Draw for T {
    fn svg(&self) -> Result<String, DrawError> {
        svg(self).map_err(DrawError::Drawing)
    }

    fn file(&self, format: Format) -> Result<Vec<u8>, DrawError> {
        let bytes = match format {
            Format::Svg => svg(self).map(|text| with_dark_style(&text).into_bytes()),
            Format::Png => png(self),
        };
        bytes.map_err(DrawError::Drawing)
    }
}

/// Returns a picture as the text of an SVG file.
fn svg(picture: &impl Picture) -> Result<String, String> {
    let (width, height) = picture.size();
    let (w, h) = (width * SVG_SCALE, height * SVG_SCALE);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (w, h)).into_drawing_area();
        draw(picture, &area, SVG_SCALE).map_err(|error| error.to_string())?;
    }
    // The width and height set the displayed size. The view box keeps the finer coordinates.
    Ok(text.replacen(
        &format!("width=\"{w}\" height=\"{h}\""),
        &format!("width=\"{width}\" height=\"{height}\""),
        1,
    ))
}

/// Adds the style sheet for readers who prefer dark pages.
fn with_dark_style(svg: &str) -> String {
    let style = format!(">\n<style>\n{}</style>\n", colours::dark_style());
    svg.replacen(">\n", &style, 1)
}

fn png(picture: &impl Picture) -> Result<Vec<u8>, String> {
    let (width, height) = picture.size();
    let (w, h) = (width * PNG_SCALE, height * PNG_SCALE);
    let mut pixels = vec![0; w as usize * h as usize * 3];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (w, h)).into_drawing_area();
        draw(picture, &area, PNG_SCALE).map_err(|error| error.to_string())?;
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, w, h);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&pixels))
        .map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Registers the fonts, without which no text has a width.
fn register_fonts() {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        let fonts = [
            (FontStyle::Normal, dejavu::sans::regular()),
            (FontStyle::Bold, dejavu::sans::bold()),
        ];
        for (style, bytes) in fonts {
            assert!(
                register_font(FONT, style, bytes).is_ok(),
                "the built-in font cannot be parsed"
            );
        }
    });
}

fn draw<DB: DrawingBackend>(
    picture: &impl Picture,
    area: &DrawingArea<DB, Shift>,
    scale: u32,
) -> DrawResult<DB> {
    register_fonts();
    area.fill(&WHITE)?;
    picture.draw(area, f64::from(scale))?;
    area.present()
}
