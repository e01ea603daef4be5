//! Names of torrents, and status texts. All fictitious.

use fastrand::Rng;

const FIRST: [&str; 20] = [
    "Quiet",
    "Northern",
    "Paper",
    "Copper",
    "Second",
    "Hollow",
    "Late",
    "Silver",
    "Open",
    "Wandering",
    "Low",
    "Winter",
    "Distant",
    "Salt",
    "Borrowed",
    "Evening",
    "Granite",
    "Blue",
    "Hidden",
    "Long",
];
const SECOND: [&str; 20] = [
    "Harbour",
    "Orchard",
    "Signals",
    "Machines",
    "Letters",
    "Rivers",
    "Station",
    "Garden",
    "Atlas",
    "Tides",
    "Archive",
    "Lanterns",
    "Summer",
    "Crossing",
    "Echoes",
    "Workshop",
    "Meridian",
    "Fields",
    "Observatory",
    "Roads",
];
const CHINESE: [&str; 12] = [
    "山海旧事",
    "长夜灯火",
    "纸上江湖",
    "北方的河",
    "云端图书馆",
    "雨巷",
    "远航日记",
    "银河修理铺",
    "深海来信",
    "午后茶馆",
    "风的形状",
    "城市漫游",
];
const EMOJI: [&str; 8] = [
    "🎧 Rain Tapes",
    "🌊 Ocean Field Recordings",
    "📚 Open Shelf",
    "🎮 Tiny Games Jam",
    "🚀 Telescope Data",
    "🐧 Live ISO",
    "🍜 面馆纪录片",
    "🎹 Piano at Night",
];
/// Names with markup, quotes and control characters, which must be treated as text.
const ODD: [&str; 4] = [
    "A <b>bold</b> & \"quoted\" collection <img src=x>",
    "العربية والعبرية עברית mixed with English",
    "name-without-any-spaces-that-goes-on-and-on-and-on-until-no-column-has-room-for-it-any-more-in-a-table-2026-complete-edition",
    "  spaces   at   odd   places  ",
];
const TEXTS: [&str; 14] = [
    "in a film",
    "back in five",
    "勿扰，在看电影 🎬",
    "写代码中",
    "on the train",
    "seeding from the attic",
    "吃饭去了 🍜",
    "coffee ☕",
    "listening, not reading",
    "周末愉快",
    "upload slots full, be patient",
    "away from keyboard",
    "在开会",
    "🎧",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    pub name: String,
    pub total_bytes: u64,
}

const MIB: u64 = 1 << 20;

/// The title of a torrent, numbered from 0.
pub fn title(number: u32, random: &mut Rng) -> Title {
    let one = |list: &[&'static str], random: &mut Rng| list[random.usize(..list.len())];
    let odd = ODD.get((number as usize).wrapping_sub(7) / 20).filter(|_| number % 20 == 7);
    let year = random.u32(1994..=2026);
    let pair = format!("{} {}", one(&FIRST, random), one(&SECOND, random));
    let dotted = pair.replace(' ', ".");
    let (name, mib) = match (odd, random.u8(..20)) {
        (Some(odd), _) => ((*odd).to_owned(), random.u64(50..4_000)),
        (None, 0..=5) => {
            let (lines, mib) = [("2160p", 18_000), ("1080p", 7_000), ("720p", 2_500)][random.usize(..3)];
            (format!("{dotted}.{year}.{lines}.WEB.x265-RC"), random.u64(mib / 2..mib * 2))
        }
        (None, 6..=8) => {
            (format!("{dotted}.S{:02}.1080p.x264-RC", random.u8(1..9)), random.u64(8_000..45_000))
        }
        (None, 9..=11) => (format!("{pair} ({year}) [FLAC]"), random.u64(200..900)),
        (None, 12..=14) => {
            let name = one(&CHINESE, random);
            let name = match random.bool() {
                true => format!("{name}.第{}季.全{}集", random.u8(1..5), random.u8(8..40)),
                false => format!("{name} {year} 国语中字 1080p"),
            };
            (name, random.u64(1_000..30_000))
        }
        (None, 15..=16) => {
            (format!("{} vol. {}", one(&EMOJI, random), random.u8(1..30)), random.u64(100..6_000))
        }
        (None, 17) => (format!("{pair} - complete works (epub, pdf)"), random.u64(20..600)),
        (None, _) => (
            format!("{}-{}.{}-amd64.iso", dotted.to_lowercase(), year % 100, random.u8(1..12)),
            random.u64(700..5_000),
        ),
    };
    Title { name, total_bytes: mib * MIB + random.u64(..MIB) }
}

pub fn status_text(random: &mut Rng) -> &'static str {
    TEXTS[random.usize(..TEXTS.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_of_many_kinds_and_follow_from_the_seed() {
        let titles =
            |seed| (0..300).map(|n| title(n, &mut Rng::with_seed(seed + u64::from(n)))).collect::<Vec<_>>();
        let all = titles(5);
        assert_eq!(all, titles(5));
        assert!(all.iter().any(|title| title.name.contains('🎧') || title.name.contains('🚀')));
        assert!(all.iter().any(|title| title.name.contains('季')));
        assert!(all.iter().any(|title| title.name.contains("<b>")));
        assert!(all.iter().all(|title| title.total_bytes > 10 * MIB && title.name.len() < 255));
    }
}
