//! What a caller hears while somebody else is called to take over: without it silence sounds like a line that is gone. Source: ITU-T
//! E.180, supplement 2.
use adapters::sound::TELEPHONE;
use entities::values::Country;
use std::{
    f64::consts::TAU,
    sync::{Arc, OnceLock},
};

/// How loud each tone is: about 19 dB below full scale.
const AMPLITUDE: f64 = 3_600.0;

/// One ring and the pause behind it, of 8 kHz.
pub fn ringback(home: Country) -> Arc<[i16]> {
    static NORTH_AMERICA: OnceLock<Arc<[i16]>> = OnceLock::new();
    static ELSEWHERE: OnceLock<Arc<[i16]>> = OnceLock::new();
    let ring = match home == Country::US {
        true => NORTH_AMERICA.get_or_init(|| ring(&[440.0, 480.0], 2, 4)),
        false => ELSEWHERE.get_or_init(|| ring(&[425.0], 1, 4)),
    };
    ring.clone()
}

fn ring(hertz: &[f64], rings_s: usize, rests_s: usize) -> Arc<[i16]> {
    let rate = TELEPHONE as usize;
    let sample = |at: usize| {
        let seconds = at as f64 / f64::from(TELEPHONE);
        let sum: f64 = hertz.iter().map(|hertz| (TAU * hertz * seconds).sin()).sum();
        (AMPLITUDE * sum) as i16
    };
    let rings = (0..rings_s * rate).map(sample);
    rings.chain(std::iter::repeat_n(0, rests_s * rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rings_and_rests() {
        for (home, rings_s) in [(Country::US, 2), ("DE".parse().unwrap(), 1)] {
            let ring = ringback(home);
            let second = TELEPHONE as usize;
            assert_eq!(ring.len(), (rings_s + 4) * second);
            assert!(ring[..second].iter().any(|sample| *sample > 3_000));
            assert!(ring[rings_s * second..].iter().all(|sample| *sample == 0));
        }
    }
}
