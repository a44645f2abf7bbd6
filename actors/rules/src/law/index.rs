//! Where each rule holds, put together once for each place.
use super::{
    entry::Entry,
    rule::{Listed, Says},
};
use entities::values::Place;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Where each rule holds: numbers of `Law::entries`.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Of where no place is known.
    pub nowhere: Vec<usize>,
    /// All that hold in a place, in order: of each that a rule names, or excepts.
    whole: HashMap<Place, Vec<usize>>,
    /// All that hold in a place that no rule names, nor its country.
    elsewhere: Vec<usize>,
}

impl Index {
    pub fn new(entries: &[Entry]) -> Self {
        let mut index = Index::default();
        let (mut everywhere, mut unnamed) = (Vec::new(), Vec::new());
        let mut by_place: HashMap<&Place, Vec<usize>> = HashMap::new();
        // All that rules of the pack name; an operator's rule makes no place known.
        let mut named: HashSet<&str> = HashSet::new();
        for (number, Entry { rule, is_added, .. }) in entries.iter().enumerate() {
            let places = &rule.places;
            if places.is_everywhere {
                everywhere.push(number);
            }
            if places.is_unnamed {
                unnamed.push(number);
            }
            // Where no place is known, the strictest of all rules.
            let is_named = !places.places.is_empty() && !is_of_one_country(&rule.says);
            if places.is_everywhere || places.is_nowhere || is_named {
                index.nowhere.push(number);
            }
            for place in &places.places {
                by_place.entry(place).or_default().push(number);
                if !is_added {
                    named.insert(place.as_str());
                }
            }
            for excepted in &rule.excepted_places {
                by_place.entry(excepted).or_default();
            }
        }
        let of = |place: &str| {
            let places = by_place.iter().find(|(known, _)| known.as_str() == place);
            places.map_or(&[][..], |(_, numbers)| numbers)
        };
        for &place in by_place.keys() {
            let is_named = named.contains(place.as_str()) || named.contains(place.country());
            let others = if is_named { &[][..] } else { &unnamed };
            let all = [of(place.as_str()), of(place.country()), others, &everywhere].concat();
            let is_excepted = |number: &usize| {
                let excepted = entries.get(*number).map(|entry| &entry.rule.excepted_places);
                excepted.into_iter().flatten().any(|excepted| place.lies_in(excepted))
            };
            let kept: BTreeSet<usize> = all.into_iter().filter(|number| !is_excepted(number)).collect();
            index.whole.insert(Place::clone(place), kept.into_iter().collect());
        }
        let elsewhere: BTreeSet<usize> = unnamed.into_iter().chain(everywhere).collect();
        index.elsewhere = elsewhere.into_iter().collect();
        index
    }

    /// The rules of a place, in order: its own, those of its country, and those that hold in all.
    pub fn numbers_of(&self, place: &Place) -> &[usize] {
        let of = |place: &str| self.whole.get(place);
        let known = of(place.as_str()).or_else(|| of(place.country()));
        known.unwrap_or(&self.elsewhere)
    }

    /// Is it told apart from its country?
    pub fn has(&self, place: &Place) -> bool {
        self.whole.contains_key(place.as_str())
    }

    pub fn of<'a>(&self, place: &Place, entries: &'a [Entry]) -> impl Iterator<Item = &'a Entry> {
        self.numbers_of(place).iter().filter_map(|number| entries.get(*number))
    }
}

/// Does it ask for what only calls within one country can have? Nothing could be done where all such rules hold.
fn is_of_one_country(says: &Says) -> bool {
    match says {
        Says::CallerId { required_prefixes, .. } => !required_prefixes.is_empty(),
        Says::Register { listed, .. } => *listed == Listed::Required,
        _ => false,
    }
}
