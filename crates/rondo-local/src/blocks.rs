//! The kinds of blocks that tensors are stored in, and how each is unpacked to numbers.
//!
//! Layouts: <https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h>; what the bits mean:
//! `dequantize_row_*` of <https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c>.
#![expect(
    clippy::indexing_slicing,
    reason = "blocks are arrays whose parts are constants, and the tests reach them all"
)]

/// How the numbers of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl Kind {
    /// Returns the kind that a file means by a number (`ggml_type`), if it can be computed with.
    pub(crate) fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// Numbers of a block.
    pub(crate) fn block(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q4_0 | Self::Q4_1 | Self::Q5_0 | Self::Q5_1 | Self::Q8_0 => 32,
            Self::Q2K | Self::Q3K | Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Returns how many bytes so many numbers take; `None` if they are not whole blocks.
    pub(crate) fn bytes(self, numbers: usize) -> Option<usize> {
        let whole = numbers.is_multiple_of(self.block());
        whole.then(|| (numbers / self.block()).checked_mul(self.block_bytes()))?
    }

    /// Unpacks as many whole blocks as both sides have. It is put in line so that callers compile it
    /// for their own instructions.
    #[inline(always)]
    pub(crate) fn unpack(self, bytes: &[u8], out: &mut [f32]) {
        // A function would take these as closures, which are not always put in line.
        macro_rules! each {
            ($one:expr) => {
                for (block, out) in bytes.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
                    $one(block, out);
                }
            };
        }
        match self {
            Self::F32 => each!(f32),
            Self::F16 => each!(f16),
            Self::Bf16 => each!(bf16),
            Self::Q4_0 => each!(q4_0),
            Self::Q4_1 => each!(q4_1),
            Self::Q5_0 => each!(q5_0),
            Self::Q5_1 => each!(q5_1),
            Self::Q8_0 => each!(q8_0),
            Self::Q2K => each!(q2k),
            Self::Q3K => each!(q3k),
            Self::Q4K => each!(q4k),
            Self::Q5K => each!(q5k),
            Self::Q6K => each!(q6k),
        }
    }
}

#[inline(always)]
fn f32(block: &[u8; 4], out: &mut [f32; 1]) {
    out[0] = f32::from_le_bytes(*block);
}

#[inline(always)]
fn f16(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = half(*block);
}

#[inline(always)]
fn bf16(block: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = f32::from_le_bytes([0, 0, block[0], block[1]]);
}

/// Widens a number of 16 bits: its bits are those of a float whose exponent is off by 112.
#[inline(always)]
pub(crate) fn half(bytes: [u8; 2]) -> f32 {
    const OFF: f32 = f32::from_bits((127 + 112) << 23);
    const INFINITE: u32 = 0x7f80_0000;
    let bits = u32::from(u16::from_le_bytes(bytes));
    let size = (bits & 0x7fff) << 13;
    let finite = f32::from_bits(size) * OFF;
    let size = if size >= 0x1f << 23 {
        size | INFINITE
    } else {
        finite.to_bits()
    };
    f32::from_bits(size | (bits & 0x8000) << 16)
}

#[inline(always)]
fn half_at(block: &[u8], at: usize) -> f32 {
    half([block[at], block[at + 1]])
}

#[inline(always)]
fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let scale = half_at(block, 0);
    for at in 0..16 {
        let byte = block[2 + at];
        out[at] = (f32::from(byte & 15) - 8.0) * scale;
        out[at + 16] = (f32::from(byte >> 4) - 8.0) * scale;
    }
}

#[inline(always)]
fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    for at in 0..16 {
        let byte = block[4 + at];
        out[at] = f32::from(byte & 15) * scale + least;
        out[at + 16] = f32::from(byte >> 4) * scale + least;
    }
}

/// Takes the two numbers of 5 bits at a place: their fifth bits are apart.
#[inline(always)]
fn fives(block: &[u8], start: usize, at: usize) -> (f32, f32) {
    let tops = u32::from_le_bytes([
        block[start],
        block[start + 1],
        block[start + 2],
        block[start + 3],
    ]);
    let byte = u32::from(block[start + 4 + at]);
    let low = byte & 15 | (tops >> at & 1) << 4;
    let high = byte >> 4 | (tops >> (at + 16) & 1) << 4;
    (low as i32 as f32, high as i32 as f32)
}

#[inline(always)]
fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let scale = half_at(block, 0);
    for at in 0..16 {
        let (low, high) = fives(block, 2, at);
        out[at] = (low - 16.0) * scale;
        out[at + 16] = (high - 16.0) * scale;
    }
}

#[inline(always)]
fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (scale, least) = (half_at(block, 0), half_at(block, 2));
    for at in 0..16 {
        let (low, high) = fives(block, 4, at);
        out[at] = low * scale + least;
        out[at + 16] = high * scale + least;
    }
}

#[inline(always)]
fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let scale = half_at(block, 0);
    for at in 0..32 {
        out[at] = f32::from(block[2 + at].cast_signed()) * scale;
    }
}

#[inline(always)]
fn q2k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (scale, offset) = (half_at(block, 80), half_at(block, 82));
    for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let own = block[part];
        let (scale, offset) = (scale * f32::from(own & 15), offset * f32::from(own >> 4));
        // Of 128 numbers, two bits each lie in 32 bytes.
        let from = 16 + part / 8 * 32 + part % 2 * 16;
        let shift = part % 8 / 2 * 2;
        for at in 0..16 {
            out[at] = f32::from(block[from + at] >> shift & 3) * scale - offset;
        }
    }
}

#[inline(always)]
fn q3k(block: &[u8; 110], out: &mut [f32; 256]) {
    let scale = half_at(block, 108);
    for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        // Scales of 6 bits: four of them in a nibble, two in a byte that four scales share.
        let low = block[96 + part % 8] >> (part / 8 * 4) & 15;
        let high = block[104 + part % 4] >> (part / 4 * 2) & 3;
        let scale = scale * (f32::from(low | high << 4) - 32.0);
        let from = part % 2 * 16;
        let shift = part % 8 / 2 * 2;
        let top = part / 2;
        for at in 0..16 {
            let low = block[32 + part / 8 * 32 + from + at] >> shift & 3;
            let high = block[from + at] >> top & 1;
            out[at] = (f32::from(low | high << 2) - 4.0) * scale;
        }
    }
}

/// Returns the factor and the offset of one of eight parts, 6 bits each (`get_scale_min_k4`).
#[inline(always)]
fn sixes(packed: &[u8], part: usize) -> (f32, f32) {
    let (factor, offset) = if part < 4 {
        (packed[part] & 63, packed[part + 4] & 63)
    } else {
        let rest = packed[part + 4];
        (
            rest & 15 | packed[part - 4] >> 6 << 4,
            rest >> 4 | packed[part] >> 6 << 4,
        )
    };
    (f32::from(factor), f32::from(offset))
}

#[inline(always)]
fn q4k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (scale, offset_scale) = (half_at(block, 0), half_at(block, 2));
    for (part, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (factor, offset) = sixes(&block[4..16], part);
        let (factor, offset) = (scale * factor, offset_scale * offset);
        let (from, shift) = (16 + part / 2 * 32, part % 2 * 4);
        for at in 0..32 {
            out[at] = f32::from(block[from + at] >> shift & 15) * factor - offset;
        }
    }
}

#[inline(always)]
fn q5k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (scale, offset_scale) = (half_at(block, 0), half_at(block, 2));
    for (part, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (factor, offset) = sixes(&block[4..16], part);
        let (factor, offset) = (scale * factor, offset_scale * offset);
        let (from, shift) = (48 + part / 2 * 32, part % 2 * 4);
        for at in 0..32 {
            let top = block[16 + at] >> part & 1;
            let five = block[from + at] >> shift & 15 | top << 4;
            out[at] = f32::from(five) * factor - offset;
        }
    }
}

#[inline(always)]
fn q6k(block: &[u8; 210], out: &mut [f32; 256]) {
    let scale = half_at(block, 208);
    for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let scale = scale * f32::from(block[192 + part].cast_signed());
        // Of 128 numbers, the lower bits lie in 64 bytes and the two top ones in 32.
        let (half, within) = (part / 8, part % 8);
        let from = half * 64 + within % 4 * 16;
        let tops = 128 + half * 32 + within % 2 * 16;
        let (shift, top_shift) = (within / 4 * 4, within / 2 * 2);
        for at in 0..16 {
            let low = block[from + at] >> shift & 15;
            let top = block[tops + at] >> top_shift & 3;
            out[at] = (f32::from(low | top << 4) - 32.0) * scale;
        }
    }
}

#[cfg(test)]
mod tests;
