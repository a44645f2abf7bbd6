//! What a schema can cost: how often one value of the arguments may be looked at, in the worst case.
//!
//! References make a short schema long: forty definitions that each name the next one twice are 2^40 checks. So the
//! schema is unfolded on paper first, per depth of the value, and one that is too heavy is refused.
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Checks that a single value of the arguments may cost.
const MAX_WEIGHT: u64 = 500;
/// Schemas in each other that look at the same value: they are on the stack together.
const MAX_CHAIN: usize = 16;
/// Compiled patterns stay in memory as long as the function.
const MAX_PATTERNS: usize = 32;

/// Keywords whose schemas look at the same value.
const HERE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords with a schema per name, for the same value.
const HERE_BY_NAME: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose schemas look at any part of the value.
const BELOW: [&str; 9] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];
/// Names under which schemas are kept for later.
const KEPT: [&str; 2] = ["$defs", "definitions"];
/// They move the base of references, or follow them where only the value decides.
const REFUSED: [&str; 6] = [
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
];
const DRAFTS: [&str; 3] = [
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// What looking at one value costs, itself and its parts.
#[derive(Clone, Debug, Default)]
struct Cost<'a> {
    /// Schemas that look at the value itself.
    here: u64,
    /// What a part of this name costs.
    named: BTreeMap<&'a str, u64>,
    /// What any part costs on top.
    any: u64,
    /// The longest row of schemas in each other that look at the value itself.
    chain: usize,
}

impl<'a> Cost<'a> {
    fn add(&mut self, other: Cost<'a>, times: u64) {
        self.here = self.here.saturating_add(other.here.saturating_mul(times));
        self.any = self.any.saturating_add(other.any.saturating_mul(times));
        for (name, cost) in other.named {
            let sum = self.named.entry(name).or_default();
            *sum = sum.saturating_add(cost.saturating_mul(times));
        }
        self.chain = self.chain.max(other.chain + 1);
    }

    /// The dearest value on any one way down.
    fn total(&self) -> u64 {
        let part = self.named.values().max().copied().unwrap_or_default();
        self.here.max(part.saturating_add(self.any))
    }
}

/// How often one value of arguments `depth` levels deep is looked at, at most; or why the schema is refused.
pub fn weigh(root: &Value, depth: usize) -> Result<u64, String> {
    let mut scale = Scale {
        root,
        known: HashMap::new(),
        open: HashSet::new(),
        patterns: 0,
    };
    scale.walk(root, "", 0)?;
    if scale.patterns > MAX_PATTERNS {
        return Err(format!("has {} patterns; {MAX_PATTERNS} are allowed", scale.patterns));
    }
    Ok(scale.cost(root, depth, 0)?.total())
}

struct Scale<'a> {
    root: &'a Value,
    /// By schema (its address in `root`) and depth of the value.
    known: HashMap<(*const Value, usize), Cost<'a>>,
    open: HashSet<(*const Value, usize)>,
    patterns: usize,
}

impl<'a> Scale<'a> {
    /// Looks for what is refused wherever it stands, used or not.
    fn walk(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return Ok(());
        };
        if let Some(name) = REFUSED.iter().find(|name| keywords.contains_key(**name)) {
            return Err(format!("{path}/{name}: is not supported; refer to \"#/$defs/…\""));
        }
        if depth > 0 && (keywords.contains_key("$id") || keywords.contains_key("$schema")) {
            return Err(format!("{path}: `$id` and `$schema` belong to the outermost schema"));
        }
        if let Some(Value::String(draft)) = keywords.get("$schema")
            && !DRAFTS.contains(&draft.trim_end_matches('#'))
        {
            return Err(format!(
                "{path}/$schema: is unknown; write one of {}",
                DRAFTS.join(", ")
            ));
        }
        self.patterns += usize::from(keywords.contains_key("pattern"));
        if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
            self.patterns += patterns.len();
        }
        if let Some(reference) = keywords.get("$ref") {
            self.target(reference)
                .map_err(|error| format!("{path}/$ref: {error}"))?;
        }
        let by_name = ["properties", "patternProperties"];
        for (keyword, inner) in keywords {
            let keyword = keyword.as_str();
            let path = format!("{path}/{keyword}");
            match inner {
                Value::Object(schemas)
                    if by_name.contains(&keyword) || HERE_BY_NAME.contains(&keyword) || KEPT.contains(&keyword) =>
                {
                    for (name, schema) in schemas {
                        self.walk(schema, &format!("{path}/{name}"), depth + 1)?;
                    }
                }
                Value::Array(schemas) if HERE.contains(&keyword) || BELOW.contains(&keyword) => {
                    for (at, schema) in schemas.iter().enumerate() {
                        self.walk(schema, &format!("{path}/{at}"), depth + 1)?;
                    }
                }
                schema if HERE.contains(&keyword) || BELOW.contains(&keyword) => {
                    self.walk(schema, &path, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What a `$ref` names: a place in the same schema, and one that [`Self::walk`] comes by.
    fn target(&self, reference: &Value) -> Result<&'a Value, String> {
        let Value::String(reference) = reference else {
            return Err("must be a string".into());
        };
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err("must be local: \"#/$defs/…\"".into());
        };
        let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '%' | '#');
        if !pointer.chars().all(plain) {
            return Err("must be written without escapes, blanks and letters beyond ASCII".into());
        }
        let allowed = match pointer.split('/').collect::<Vec<_>>().as_slice() {
            [""] => true,
            ["", kept, _] => KEPT.contains(kept) || *kept == "properties",
            _ => false,
        };
        if !allowed {
            return Err(
                "must be \"#\", \"#/$defs/<name>\", \"#/definitions/<name>\" or \"#/properties/<name>\"".into(),
            );
        }
        self.root.pointer(pointer).ok_or_else(|| "names nothing".into())
    }

    fn cost(&mut self, schema: &'a Value, depth: usize, above: usize) -> Result<Cost<'a>, String> {
        let Value::Object(keywords) = schema else {
            return Ok(Cost::default());
        };
        let key = (std::ptr::from_ref(schema), depth);
        if self.open.contains(&key) {
            return Err("a `$ref` comes back to itself without going into a property or an item".into());
        }
        let cost = match self.known.get(&key) {
            Some(cost) => cost.clone(),
            None => {
                // Checked on the way down too: a row of references must not fill our own stack.
                chain_fits(above)?;
                self.open.insert(key);
                let cost = self.of_keywords(keywords, depth, above)?;
                self.open.remove(&key);
                self.known.insert(key, cost.clone());
                cost
            }
        };
        chain_fits(above + cost.chain)?;
        if cost.total() > MAX_WEIGHT {
            return Err(
                "is too costly to check: it refers to itself, or repeats itself, in too many alternatives".into(),
            );
        }
        Ok(cost)
    }

    fn of_keywords(
        &mut self,
        keywords: &'a Map<String, Value>,
        depth: usize,
        above: usize,
    ) -> Result<Cost<'a>, String> {
        let listed = keywords.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        let mut cost = Cost {
            here: 1 + listed as u64 / 16 + 8 * u64::from(keywords.contains_key("pattern")),
            ..Cost::default()
        };
        // What was not looked at yet is found by looking at everything else again.
        let times = 1 + u64::from(keywords.keys().any(|keyword| keyword.starts_with("unevaluated")));
        if let Some(reference) = keywords.get("$ref") {
            let target = self.target(reference)?;
            cost.add(self.cost(target, depth, above + 1)?, times);
        }
        for (keyword, inner) in keywords {
            let keyword = keyword.as_str();
            let schemas: Vec<&Value> = match inner {
                Value::Array(schemas) => schemas.iter().collect(),
                Value::Object(schemas) if HERE_BY_NAME.contains(&keyword) => schemas.values().collect(),
                schema => vec![schema],
            };
            if HERE.contains(&keyword) || HERE_BY_NAME.contains(&keyword) {
                for schema in schemas {
                    cost.add(self.cost(schema, depth, above + 1)?, times);
                }
            } else if BELOW.contains(&keyword) && depth > 0 {
                let mut part = 0_u64;
                for schema in schemas {
                    let one = self.cost(schema, depth - 1, 0)?.total();
                    // An item stands in one place of a row.
                    part = part.max(one);
                }
                cost.any = cost.any.saturating_add(part);
            }
        }
        if depth > 0 {
            self.of_properties(keywords, depth - 1, &mut cost)?;
        }
        Ok(cost)
    }

    fn of_properties(
        &mut self,
        keywords: &'a Map<String, Value>,
        depth: usize,
        cost: &mut Cost<'a>,
    ) -> Result<(), String> {
        if let Some(Value::Object(schemas)) = keywords.get("patternProperties") {
            for schema in schemas.values() {
                let part = self.cost(schema, depth, 0)?.total();
                cost.any = cost.any.saturating_add(part + 8);
            }
        }
        if let Some(Value::Object(schemas)) = keywords.get("properties") {
            for (name, schema) in schemas {
                let part = self.cost(schema, depth, 0)?.total();
                let sum = cost.named.entry(name).or_default();
                *sum = sum.saturating_add(part);
            }
        }
        Ok(())
    }
}

fn chain_fits(length: usize) -> Result<(), String> {
    if length > MAX_CHAIN {
        return Err(format!("has more than {MAX_CHAIN} schemas in each other for one value"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "weigh_tests.rs"]
mod tests;
