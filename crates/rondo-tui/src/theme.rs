//! The styles of the screen. Color never says what no word or sign says too.

use crate::options::Colours;
use ratatui_core::style::{Color, Modifier, Style};

/// A style for each thing that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) text: Style,
    /// Secondary text: thoughts, durations, hints.
    pub(crate) dim: Style,
    /// Emphasis: headings, the marks of a person's words, keys.
    pub(crate) accent: Style,
    pub(crate) good: Style,
    pub(crate) bad: Style,
    pub(crate) warn: Style,
    /// Lines that came, and lines that went.
    pub(crate) added: Style,
    pub(crate) removed: Style,
    pub(crate) code: Style,
    pub(crate) link: Style,
    pub(crate) keyword: Style,
    pub(crate) string: Style,
    pub(crate) comment: Style,
    pub(crate) number: Style,
    /// Frames, which nothing from outside can draw.
    pub(crate) frame: Style,
    /// The focused frame.
    pub(crate) focus: Style,
    /// A selection, or what was found.
    pub(crate) selected: Style,
}

/// The colors of a theme, in the order of the fields of [`Theme`] after `text`.
struct Palette {
    dim: Color,
    accent: Color,
    good: Color,
    bad: Color,
    warn: Color,
    code: Color,
    link: Color,
    keyword: Color,
    string: Color,
    comment: Color,
    number: Color,
    frame: Color,
}

/// On a ground as dark as this or darker.
#[cfg(test)]
const DARK_GROUND: (u8, u8, u8) = (0x1e, 0x1e, 0x2e);
/// On a ground as light as this or lighter.
#[cfg(test)]
const LIGHT_GROUND: (u8, u8, u8) = (0xf5, 0xf5, 0xf5);

const DARK: Palette = Palette {
    dim: Color::Rgb(0x9a, 0xa0, 0xb4),
    accent: Color::Rgb(0x8a, 0xb4, 0xf8),
    good: Color::Rgb(0x9b, 0xd3, 0x8f),
    bad: Color::Rgb(0xf3, 0x8b, 0x9c),
    warn: Color::Rgb(0xf0, 0xc6, 0x74),
    code: Color::Rgb(0xd7, 0xc9, 0xa7),
    link: Color::Rgb(0x7f, 0xc8, 0xd8),
    keyword: Color::Rgb(0xc8, 0xa6, 0xf0),
    string: Color::Rgb(0x9b, 0xd3, 0x8f),
    comment: Color::Rgb(0x9a, 0xa0, 0xb4),
    number: Color::Rgb(0xf0, 0xb0, 0x80),
    frame: Color::Rgb(0x8f, 0x95, 0xa8),
};

const LIGHT: Palette = Palette {
    dim: Color::Rgb(0x5a, 0x5f, 0x6e),
    accent: Color::Rgb(0x1a, 0x56, 0xb8),
    good: Color::Rgb(0x1e, 0x6b, 0x2e),
    bad: Color::Rgb(0xb0, 0x1e, 0x35),
    warn: Color::Rgb(0x80, 0x55, 0x00),
    code: Color::Rgb(0x6b, 0x4a, 0x12),
    link: Color::Rgb(0x0b, 0x63, 0x78),
    keyword: Color::Rgb(0x73, 0x30, 0xb5),
    string: Color::Rgb(0x1e, 0x6b, 0x2e),
    comment: Color::Rgb(0x5a, 0x5f, 0x6e),
    number: Color::Rgb(0x9c, 0x40, 0x10),
    frame: Color::Rgb(0x5a, 0x5f, 0x6e),
};

const SIXTEEN: Palette = Palette {
    dim: Color::Reset,
    accent: Color::Cyan,
    good: Color::Green,
    bad: Color::LightRed,
    warn: Color::Yellow,
    code: Color::Yellow,
    link: Color::Cyan,
    keyword: Color::LightMagenta,
    string: Color::Green,
    comment: Color::Reset,
    number: Color::Yellow,
    frame: Color::Reset,
};

/// Green, yellow and cyan are too light on a light ground.
const SIXTEEN_ON_LIGHT: Palette = Palette {
    dim: Color::Reset,
    accent: Color::Blue,
    good: Color::Reset,
    bad: Color::Red,
    warn: Color::Magenta,
    code: Color::Magenta,
    link: Color::Blue,
    keyword: Color::Magenta,
    string: Color::Blue,
    comment: Color::Reset,
    number: Color::Red,
    frame: Color::Reset,
};

impl Theme {
    /// Returns the theme of these colors.
    pub(crate) fn of(colours: Colours) -> Self {
        match colours {
            Colours::None => Self::built(None),
            Colours::Sixteen => Self::built(Some(&SIXTEEN)),
            Colours::SixteenOnLight => Self::built(Some(&SIXTEEN_ON_LIGHT)),
            Colours::Dark => Self::built(Some(&DARK)),
            Colours::Light => Self::built(Some(&LIGHT)),
        }
    }

    fn built(palette: Option<&Palette>) -> Self {
        let plain = Style::new();
        let style = |colour: fn(&Palette) -> Color| {
            let colour = palette.map(colour).filter(|it| *it != Color::Reset);
            colour.map_or(plain, |it| plain.fg(it))
        };
        // Without a color of their own, faint is what distinguishes them.
        let faint = |colour: fn(&Palette) -> Color| match style(colour) {
            style if style == plain => plain.add_modifier(Modifier::DIM),
            style => style,
        };
        Self {
            text: plain,
            dim: faint(|it| it.dim),
            accent: style(|it| it.accent).add_modifier(Modifier::BOLD),
            good: style(|it| it.good),
            bad: style(|it| it.bad).add_modifier(Modifier::BOLD),
            warn: style(|it| it.warn).add_modifier(Modifier::BOLD),
            added: style(|it| it.good),
            removed: style(|it| it.bad),
            code: style(|it| it.code),
            link: style(|it| it.link).add_modifier(Modifier::UNDERLINED),
            keyword: style(|it| it.keyword),
            string: style(|it| it.string),
            comment: faint(|it| it.comment),
            number: style(|it| it.number),
            frame: faint(|it| it.frame),
            focus: style(|it| it.accent).add_modifier(Modifier::BOLD),
            selected: plain.add_modifier(Modifier::REVERSED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
        let part = |byte: u8| {
            let value = f64::from(byte) / 255.0;
            match value <= 0.03928 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
    }

    fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_can_be_read_on_its_ground() {
        // As xterm has the sixteen.
        let (black, white) = ((0, 0, 0), (0xff, 0xff, 0xff));
        for (palette, ground) in [
            (&DARK, DARK_GROUND),
            (&LIGHT, LIGHT_GROUND),
            (&SIXTEEN, black),
            (&SIXTEEN_ON_LIGHT, white),
        ] {
            let Palette {
                dim,
                accent,
                good,
                bad,
                warn,
                code,
                link,
                keyword,
                string,
                comment,
                number,
                frame,
            } = palette;
            for colour in [
                dim, accent, good, bad, warn, code, link, keyword, string, comment, number, frame,
            ] {
                let colour = match *colour {
                    Color::Rgb(r, g, b) => (r, g, b),
                    // The terminal's own ink.
                    Color::Reset => continue,
                    Color::Red => (0xcd, 0, 0),
                    Color::Green => (0, 0xcd, 0),
                    Color::Yellow => (0xcd, 0xcd, 0),
                    Color::Blue => (0, 0, 0xee),
                    Color::Magenta => (0xcd, 0, 0xcd),
                    Color::Cyan => (0, 0xcd, 0xcd),
                    Color::LightRed => (0xff, 0, 0),
                    Color::LightMagenta => (0xff, 0, 0xff),
                    colour => panic!("{colour:?} is of no palette"),
                };
                let contrast = contrast(colour, ground);
                assert!(contrast >= 4.5, "{colour:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let theme = format!("{:?}", Theme::of(Colours::None));
        assert!(!theme.contains("fg: Some"), "{theme}");
    }
}
