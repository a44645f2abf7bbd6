//! Does the law still say of each exported attempt what was recorded?
use super::{at, each_line, origin::Origin, text_of};
use crate::{cli::commands::print, error::CannotStart};
use clap::Args;
use entities::{attempt::RecordKind, compliance_export::ExportFormat};
use rules::law::{
    self, Law,
    record::{AttemptBody, Difference, chain, prove},
};
use serde_json::json;
use std::{collections::HashMap, path::PathBuf};

#[derive(Args)]
pub struct Prove {
    /// Files of exports, as JSON lines
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The operator's own rules that were in force, as a file
    #[arg(long, value_name = "FILE")]
    law: Vec<PathBuf>,
    #[command(flatten)]
    origin: Origin,
}

impl Prove {
    pub fn run(self, json: bool) -> Result<(), CannotStart> {
        if self.origin.public_key.is_some() && self.origin.manifest.is_none() {
            return Err(CannotStart(
                "--public-key: give what it has signed, with --manifest".into(),
            ));
        }
        let signed = self.origin.checked(&self.files)?;
        if signed
            .as_ref()
            .is_some_and(|(manifest, _)| manifest.format == ExportFormat::Csv)
        {
            return Err(CannotStart("attempts are proved from an export of JSON lines".into()));
        }
        let mut laws = Laws::read(&self.law)?;
        let (mut attempts, mut verdicts) = (0_u64, 0_u64);
        for file in &self.files {
            each_line(file, |number, line| {
                if line.kind != RecordKind::Attempt {
                    return Ok(());
                }
                let row = line.row();
                let wrong = |why: String| at(file, number, format!("attempt {}: {why}", row.attempt_id));
                // What was changed proves nothing.
                chain::check(&row).map_err(|broken| wrong(broken.to_string()))?;
                let body: AttemptBody = serde_json::from_str(&row.body)
                    .map_err(|_| wrong("its row does not say what an attempt says".to_owned()))?;
                let proved = laws.of(&body).and_then(|law| prove(&body, law));
                proved.map_err(|difference| wrong(difference.to_string()))?;
                attempts += 1;
                verdicts += body.asked.len() as u64;
                Ok(())
            })?;
        }
        let key = signed.map(|(_, key)| key);
        if json {
            print(
                &json!({ "attempts": attempts, "verdicts": verdicts, "is_signed": key.is_some(), "public_key": key }),
            );
            return Ok(());
        }
        println!("{attempts} attempts: all {verdicts} verdicts come out as they were recorded");
        match key {
            Some(key) => println!("the manifest is signed with {key}: compare it with GET /v1/compliance/heads"),
            None => println!("no manifest was given: whoever writes such a file can make it come out"),
        }
        Ok(())
    }
}

/// The laws by which the attempts were judged: a pack's version, and an operator's file by its SHA-256.
struct Laws {
    /// Texts of operators, by their digests.
    files: HashMap<String, (String, String)>,
    known: HashMap<(String, Option<String>), Law>,
}

impl Laws {
    fn read(files: &[PathBuf]) -> Result<Self, CannotStart> {
        let mut texts = HashMap::new();
        for file in files {
            let text = text_of(file)?;
            texts.insert(chain::digest(&text), (file.display().to_string(), text));
        }
        Ok(Laws {
            files: texts,
            known: HashMap::new(),
        })
    }

    fn of(&mut self, body: &AttemptBody) -> Result<&Law, Difference> {
        let key = (body.law.clone(), body.operator.clone());
        if !self.known.contains_key(&key) {
            let law = self.made(body)?;
            self.known.insert(key.clone(), law);
        }
        self.known.get(&key).ok_or_else(|| unknown("no law".to_owned()))
    }

    fn made(&self, body: &AttemptBody) -> Result<Law, Difference> {
        let pack = law::of_version(&body.law)
            .ok_or_else(|| unknown(format!("this program does not have the law pack {}", body.law)))?;
        let operator = match &body.operator {
            None => None,
            Some(sha256) => Some(self.files.get(sha256).ok_or_else(|| {
                unknown(format!(
                    "was judged by rules of the operator, too: give their file with --law (its SHA-256 is {sha256})"
                ))
            })?),
        };
        let operator = operator.map(|(name, text)| (name.as_str(), text.as_str()));
        Law::read(pack, operator).map_err(|error| unknown(format!("the operator's rules cannot be read: {error}")))
    }
}

fn unknown(what: String) -> Difference {
    Difference { rule: None, what }
}
