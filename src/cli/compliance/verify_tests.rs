use super::*;
use entities::{
    attempt::{Model, New, RecordKind},
    ids::{AttemptId, ComplianceExportId, TenantId},
    values::{Env, Moment},
};
use rules::law::record::{
    chain::{digest, placed},
    line::Place,
};
use runtime::{link_keys::LinkKeys, signing::SigningKey};
use serde_json::value::RawValue;
use tempfile::TempDir;
use uuid::Uuid;

fn chain(rows: i64) -> Vec<Model> {
    let (mut hash, mut chain) = (String::new(), Vec::new());
    for n in 0..rows {
        let content = format!(r#"{{"phone_number":"+1500234{n:04}"}}"#);
        let new = New {
            tenant_id: TenantId(Uuid::from_u128(1)),
            env: Env::Live,
            kind: RecordKind::Outcome,
            attempt_id: AttemptId(Uuid::from_u128(9)),
            dial_n: 0,
            campaign_id: None,
            number_hash: None,
            email_hash: None,
            consent_id: None,
            body: format!(r#"{{"status":"completed","n":{n}}}"#),
            content_sha256: Some(digest(&content)),
            content: Some(content),
        };
        let row = placed(new, (n, &hash), Moment::from_millis(n));
        hash.clone_from(&row.hash);
        chain.push(row);
    }
    chain
}

/// A folder with an export in it.
struct Exported {
    folder: TempDir,
    rows: Vec<Model>,
    manifest: Manifest,
    key: SigningKey,
}

impl Exported {
    fn new(rows: Vec<Model>) -> Self {
        let head = rows.last().unwrap();
        let manifest = Manifest {
            form: MANIFEST_FORM.to_owned(),
            export_id: ComplianceExportId(Uuid::from_u128(2)),
            tenant_id: head.tenant_id,
            env: head.env,
            made_at: Moment::from_millis(0),
            format: ExportFormat::Jsonl,
            is_whole: true,
            of_person: false,
            campaign_id: None,
            since: None,
            until: None,
            files: Vec::new(),
            rows: i64::try_from(rows.len()).unwrap(),
            first_n: 1,
            last_n: head.n,
            head: Place {
                n: head.n,
                hash: head.hash.clone(),
            },
            anchor: None,
            laws: Vec::new(),
        };
        Exported {
            folder: TempDir::new().unwrap(),
            manifest,
            rows,
            key: SigningKey::of(&LinkKeys::generate()).unwrap(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the rows, and a manifest of them.
    fn written(&mut self) -> Verify {
        let lines = self
            .rows
            .iter()
            .map(|row| serde_json::to_string(&Line::of(row).unwrap()).unwrap() + "\n");
        let text: String = lines.collect();
        std::fs::write(self.at("1.jsonl"), &text).unwrap();
        self.manifest.files = vec![ManifestFile {
            part: 1,
            bytes: i64::try_from(text.len()).unwrap(),
            sha256: digest(&text),
            rows: self.manifest.rows,
            first_n: 1,
            last_n: self.manifest.last_n,
        }];
        let manifest = serde_json::to_string(&self.manifest).unwrap();
        let signed = Signed {
            signature: self.key.sign(manifest.as_bytes()).unwrap(),
            manifest: RawValue::from_string(manifest).unwrap(),
            algorithm: ALGORITHM.to_owned(),
            public_key: self.key.public_key(),
        };
        std::fs::write(self.at("manifest.json"), serde_json::to_string(&signed).unwrap()).unwrap();
        Verify {
            files: vec![self.at("1.jsonl")],
            manifest: Some(self.at("manifest.json")),
            public_key: Some(self.key.public_key()),
        }
    }

    /// Changes what was written, and says what is found.
    fn changed(&mut self, file: &str, change: impl Fn(String) -> String) -> String {
        let verify = self.written();
        let text = std::fs::read_to_string(self.at(file)).unwrap();
        std::fs::write(self.at(file), change(text)).unwrap();
        verify.run(true).unwrap_err().to_string()
    }
}

#[test]
fn an_export_is_as_it_was_written() {
    let mut exported = Exported::new(chain(5));
    exported.written().run(true).unwrap();
    // What names people was erased since: another file, and the same chain.
    for row in &mut exported.rows {
        row.content = None;
    }
    exported.written().run(true).unwrap();
}

#[test]
fn whatever_was_changed_is_found_and_named() {
    let mut exported = Exported::new(chain(5));
    let swapped = |text: String| text.replacen("completed", "failed", 1);
    assert!(
        exported
            .changed("1.jsonl", swapped)
            .contains("is not file 1 of the manifest")
    );
    let fewer = |text: String| text.replace(r#""rows":5"#, r#""rows":4"#);
    assert!(
        exported
            .changed("manifest.json", fewer)
            .contains("its signature does not fit")
    );
    let without = |file: &str, verify: Verify| Verify {
        manifest: None,
        public_key: None,
        files: vec![verify.files[0].with_file_name(file)],
    };
    // Without a manifest the lines speak for themselves.
    let lines = |exported: &mut Exported, change: &dyn Fn(&mut Vec<String>)| {
        let verify = exported.written();
        let text = std::fs::read_to_string(&verify.files[0]).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        std::fs::write(exported.at("2.jsonl"), lines.join("\n")).unwrap();
        without("2.jsonl", verify).run(true).map_err(|error| error.to_string())
    };
    let told = |why: Result<(), String>| why.unwrap_err().split_once("2.jsonl:").unwrap().1.to_owned();
    let edited = lines(&mut exported, &|lines| {
        lines[2] = lines[2].replace("completed", "failed")
    });
    assert_eq!(told(edited), "3: row 3 is not as it was recorded: its hash is another");
    let moved = lines(&mut exported, &|lines| lines.swap(1, 3));
    assert!(told(moved).starts_with("3: row 3 does not stand behind the row before it"));
    let another = lines(&mut exported, &|lines| {
        lines[4] = lines[4].replace("+15002340004", "+15002340005")
    });
    assert!(told(another).starts_with("5: row 5 has a content that is not the one"));
    let garbage = lines(&mut exported, &|lines| lines[1].truncate(40));
    assert!(told(garbage).starts_with("2: is not a record"));
    // Of rows that were picked some are missing, and that is no fault.
    assert_eq!(lines(&mut exported, &|lines| drop(lines.remove(2))), Ok(()));
}

#[test]
fn a_row_that_is_missing_at_the_end_or_the_beginning_is_missed_by_the_manifest() {
    let whole = chain(5);
    for left in [
        whole[..4].to_vec(),
        whole[1..].to_vec(),
        [&whole[..2], &whole[3..]].concat(),
    ] {
        let mut exported = Exported::new(whole.clone());
        exported.rows = left;
        assert!(exported.written().run(true).is_err());
    }
    // By somebody who has our words, and not our key.
    let mut exported = Exported::new(whole);
    let verify = exported.written();
    let another = Verify {
        public_key: Some(SigningKey::of(&LinkKeys::generate()).unwrap().public_key()),
        ..verify
    };
    assert!(
        another
            .run(true)
            .unwrap_err()
            .to_string()
            .contains("signed with another key")
    );
}
