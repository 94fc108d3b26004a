//! Draws what a terminal shows as a picture, for the documentation and for eyes:
//! `tmux capture-pane -e -p | cargo xtask picture screen.png`.
#![expect(
    clippy::print_stdout,
    reason = "a developer's command talks on the terminal"
)]

use ab_glyph::{Font as _, FontVec, PxScale, ScaleFont as _, point};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use std::fs::File;
use std::io::{self, BufWriter, Read as _};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use vt100::{Cell, Color};

/// Pixels of a letter's height.
const SCALE: f32 = 18.0;
/// Pixels around the screen.
const MARGIN: usize = 8;
/// The bound on the drawn bytes.
const INPUT_BYTES_MAX: u64 = 1 << 20;
/// How much of its ink a faint letter keeps.
const FAINT: f32 = 0.6;

type Rgb = [u8; 3];

const DARK: Ground = Ground {
    back: [0x1e, 0x1e, 0x2e],
    ink: [0xdc, 0xde, 0xe8],
};
const LIGHT: Ground = Ground {
    back: [0xfa, 0xfa, 0xfa],
    ink: [0x24, 0x26, 0x30],
};

/// The first sixteen colors of xterm.
const SIXTEEN: [Rgb; 16] = [
    [0x00, 0x00, 0x00],
    [0xcd, 0x00, 0x00],
    [0x00, 0xcd, 0x00],
    [0xcd, 0xcd, 0x00],
    [0x00, 0x00, 0xee],
    [0xcd, 0x00, 0xcd],
    [0x00, 0xcd, 0xcd],
    [0xe5, 0xe5, 0xe5],
    [0x7f, 0x7f, 0x7f],
    [0xff, 0x00, 0x00],
    [0x00, 0xff, 0x00],
    [0xff, 0xff, 0x00],
    [0x5c, 0x5c, 0xff],
    [0xff, 0x00, 0xff],
    [0x00, 0xff, 0xff],
    [0xff, 0xff, 0xff],
];

#[derive(Parser)]
#[command(
    name = "cargo xtask picture",
    bin_name = "cargo xtask picture",
    about = "Draws what a terminal shows as a picture"
)]
struct Args {
    /// File to write the picture to, as PNG
    file: PathBuf,
    /// Columns of the terminal
    #[arg(long, default_value = "80")]
    columns: NonZeroU16,
    /// Rows of the terminal
    #[arg(long, default_value = "24")]
    rows: NonZeroU16,
    /// Draws on a light ground
    #[arg(long)]
    light: bool,
    /// A directory with `DejaVuSansMono.ttf` and `DejaVuSansMono-Bold.ttf`
    #[arg(long, default_value = "/usr/share/fonts/truetype/dejavu")]
    fonts: PathBuf,
}

/// Colors if a terminal names none.
struct Ground {
    back: Rgb,
    ink: Rgb,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut input = Vec::new();
    io::stdin()
        .take(INPUT_BYTES_MAX + 1)
        .read_to_end(&mut input)
        .context("failed to read standard input")?;
    let is_within = input.len() <= usize::try_from(INPUT_BYTES_MAX)?;
    ensure!(
        is_within,
        "standard input is larger than {INPUT_BYTES_MAX} bytes"
    );
    let mut parser = vt100::Parser::new(args.rows, args.columns, 0);
    for (number, line) in input.split(|it| *it == b'\n').enumerate() {
        if number > 0 && number < usize::from(args.rows.get()) {
            parser.process(b"\r\n");
        }
        parser.process(line);
    }
    let ground = if args.light { &LIGHT } else { &DARK };
    let picture = Picture::of(parser.screen(), ground, &Fonts::read(&args.fonts)?);
    picture.write(&args.file)?;
    println!(
        "{}: {} x {}",
        args.file.display(),
        picture.width,
        picture.height
    );
    Ok(())
}

struct Fonts {
    plain: FontVec,
    bold: FontVec,
}

impl Fonts {
    fn read(directory: &Path) -> Result<Self> {
        let font = |name: &str| -> Result<FontVec> {
            let path = directory.join(name);
            let bytes = std::fs::read(&path).with_context(|| {
                format!(
                    "failed to read `{}`: `--fonts` names another directory",
                    path.display()
                )
            })?;
            Ok(FontVec::try_from_vec(bytes)?)
        };
        Ok(Self {
            plain: font("DejaVuSansMono.ttf")?,
            bold: font("DejaVuSansMono-Bold.ttf")?,
        })
    }
}

/// Pixels, three bytes each.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

/// Position of a cell.
struct Place {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    ascent: f32,
}

impl Picture {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a letter is some pixels wide and high"
    )]
    fn of(screen: &vt100::Screen, ground: &Ground, fonts: &Fonts) -> Self {
        let (rows, columns) = screen.size();
        let scaled = fonts.plain.as_scaled(PxScale::from(SCALE));
        let cell_width = scaled.h_advance(fonts.plain.glyph_id('m')).round() as usize;
        let cell_height = scaled.height().round() as usize;
        let width = usize::from(columns.get()) * cell_width + 2 * MARGIN;
        let height = usize::from(rows.get()) * cell_height + 2 * MARGIN;
        let mut picture = Self {
            width,
            height,
            pixels: ground.back.repeat(width * height),
        };
        for row in 0..rows.get() {
            for column in 0..columns.get() {
                let Some(cell) = screen.cell(row, column) else {
                    continue;
                };
                let place = Place {
                    left: MARGIN + usize::from(column) * cell_width,
                    top: MARGIN + usize::from(row) * cell_height,
                    width: cell_width * if cell.is_wide() { 2 } else { 1 },
                    height: cell_height,
                    ascent: scaled.ascent(),
                };
                if !cell.is_wide_continuation() {
                    picture.draw(cell, &place, ground, fonts);
                }
            }
        }
        picture
    }

    fn draw(&mut self, cell: &Cell, place: &Place, ground: &Ground, fonts: &Fonts) {
        let mut ink = colour(cell.fgcolor(), ground.ink);
        let mut back = colour(cell.bgcolor(), ground.back);
        if cell.inverse() {
            (ink, back) = (back, ink);
        }
        if cell.dim() {
            ink = mixed(back, ink, FAINT);
        }
        for y in place.top..place.top + place.height {
            for x in place.left..place.left + place.width {
                self.set(x, y, back);
            }
        }
        if cell.underline() {
            for x in place.left..place.left + place.width {
                self.set(x, place.top + place.height - 2, ink);
            }
        }
        let font = if cell.bold() {
            &fonts.bold
        } else {
            &fonts.plain
        };
        for letter in cell.contents().chars() {
            self.letter(letter, place, (ink, back), font);
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "pixels of a picture; those outside of it are left out"
    )]
    fn letter(&mut self, letter: char, place: &Place, (ink, back): (Rgb, Rgb), font: &FontVec) {
        let position = point(place.left as f32, place.top as f32 + place.ascent);
        let glyph = font
            .glyph_id(letter)
            .with_scale_and_position(SCALE, position);
        let Some(outline) = font.outline_glyph(glyph) else {
            return;
        };
        let bounds = outline.px_bounds();
        outline.draw(|x, y, cover| {
            let (x, y) = (bounds.min.x + x as f32, bounds.min.y + y as f32);
            if x >= 0.0 && y >= 0.0 {
                self.set(x as usize, y as usize, mixed(back, ink, cover.min(1.0)));
            }
        });
    }

    fn set(&mut self, x: usize, y: usize, colour: Rgb) {
        let at = (y * self.width + x) * 3;
        if x < self.width
            && let Some(pixel) = self.pixels.get_mut(at..at + 3)
        {
            pixel.copy_from_slice(&colour);
        }
    }

    fn write(&self, file: &Path) -> Result<()> {
        let failed = || format!("failed to write `{}`", file.display());
        let out = File::create(file).with_context(failed)?;
        let (width, height) = (u32::try_from(self.width)?, u32::try_from(self.height)?);
        let mut encoder = png::Encoder::new(BufWriter::new(out), width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().with_context(failed)?;
        writer.write_image_data(&self.pixels).with_context(failed)
    }
}

fn colour(colour: Color, default: Rgb) -> Rgb {
    match colour {
        Color::Default => default,
        Color::Idx(number) => indexed(number),
        Color::Rgb(red, green, blue) => [red, green, blue],
    }
}

/// Returns a color of the table of 256: sixteen, a cube of six steps, and gray.
fn indexed(number: u8) -> Rgb {
    let step = |it: u8| if it == 0 { 0 } else { 55 + it * 40 };
    match number {
        0..16 => SIXTEEN
            .get(usize::from(number))
            .copied()
            .unwrap_or_default(),
        16..232 => {
            let number = number - 16;
            [step(number / 36), step(number / 6 % 6), step(number % 6)]
        }
        232.. => [8 + (number - 232) * 10; 3],
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between two bytes"
)]
fn mixed(back: Rgb, ink: Rgb, part: f32) -> Rgb {
    let mut mixed = back;
    for (byte, ink) in mixed.iter_mut().zip(ink) {
        let back = f32::from(*byte);
        *byte = (back + (f32::from(ink) - back) * part).round() as u8;
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_table_and_half_way_between() {
        assert_eq!(indexed(196), [255, 0, 0]);
        assert_eq!(indexed(255), [238, 238, 238]);
        assert_eq!(mixed([0, 0, 0], [200, 100, 0], 0.5), [100, 50, 0]);
    }

    #[test]
    fn nothing_is_drawn_outside_of_the_picture() {
        let mut picture = Picture {
            width: 2,
            height: 1,
            pixels: vec![0; 6],
        };
        for (x, y) in [(1, 0), (2, 0), (0, 1), (5, 5)] {
            picture.set(x, y, [9, 9, 9]);
        }
        assert_eq!(picture.pixels, [0, 0, 0, 9, 9, 9]);
    }
}
