use super::*;
use entities::{
    attempt::New,
    ids::{AttemptId, ComplianceExportId, TenantId},
    values::{Env, Moment},
};
use rules::law::record::{
    chain::{digest, placed},
    line::{MANIFEST_FORM, ManifestFile, Place, Signed, head_text},
};
use runtime::{
    link_keys::LinkKeys,
    signing::{ALGORITHM, SigningKey},
};
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
            made_at: Moment::from_millis(10_000),
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
            origin: Origin {
                manifest: Some(self.at("manifest.json")),
                public_key: Some(self.key.public_key()),
            },
            heads: Vec::new(),
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
        origin: Origin::default(),
        heads: Vec::new(),
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
        origin: Origin {
            public_key: Some(SigningKey::of(&LinkKeys::generate()).unwrap().public_key()),
            ..verify.origin
        },
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

/// Heads of these rows, as they were published.
fn published(exported: &Exported, name: &str, rows: &[&Model], signed_at: Moment) -> PathBuf {
    let heads = rows.iter().map(|row| {
        let day = format!("2026-11-{:02}", row.n);
        let text = head_text(row.owner(), &day, row.n, &row.hash);
        let signature = exported.key.sign(text.as_bytes()).unwrap();
        json!({ "day": day, "n": row.n, "row_hash": row.hash, "head_signed_at": signed_at,
            "public_key": exported.key.public_key(), "signature": signature })
    });
    let answer = json!({ "algorithm": ALGORITHM, "anchor_n": 0, "last_n": 5, "heads": heads.collect::<Vec<_>>() });
    std::fs::write(exported.at(name), answer.to_string()).unwrap();
    exported.at(name)
}

#[test]
fn a_record_that_was_made_anew_does_not_fit_what_was_published() {
    let (whole, early) = (chain(5), Moment::from_millis(5_000));
    let mut exported = Exported::new(whole.clone());
    let run = |exported: &mut Exported, heads: PathBuf| {
        let verify = Verify {
            heads: vec![heads],
            ..exported.written()
        };
        verify.run(true).map_err(|error| error.to_string())
    };
    let kept = published(&exported, "kept.json", &[&whole[1], &whole[4]], early);
    assert_eq!(run(&mut exported, kept.clone()), Ok(()));
    // With the same key, from the third row on.
    let mut anew = whole[..2].to_vec();
    for row in &whole[2..] {
        let before = anew.last().unwrap();
        let new = New {
            tenant_id: row.tenant_id,
            env: row.env,
            kind: row.kind,
            attempt_id: row.attempt_id,
            dial_n: row.dial_n,
            campaign_id: row.campaign_id,
            number_hash: None,
            email_hash: None,
            consent_id: None,
            body: r#"{"status":"failed"}"#.into(),
            content: None,
            content_sha256: None,
        };
        anew.push(placed(new, (before.n, &before.hash), row.at));
    }
    let mut other = Exported::new(anew);
    other.key = exported.key;
    other.written().run(true).unwrap();
    let why = run(&mut other, kept.clone()).unwrap_err();
    assert!(
        why.contains("row 5 was published on 2026-11-05 with another hash"),
        "{why}"
    );
    // Cut off behind the third.
    let mut cut = Exported::new(whole[..3].to_vec());
    cut.key = other.key;
    let why = run(&mut cut, kept.clone()).unwrap_err();
    assert!(why.contains("rows were cut off"), "{why}");
    // A head that is forged, or another chain's.
    let text = std::fs::read_to_string(&kept)
        .unwrap()
        .replace("2026-11-05", "2026-11-06");
    std::fs::write(cut.at("forged.json"), text).unwrap();
    let forged = cut.at("forged.json");
    let why = run(&mut cut, forged).unwrap_err();
    assert!(
        why.contains("the head of 2026-11-06") && why.contains("does not fit"),
        "{why}"
    );
}

#[test]
fn what_is_blanked_without_an_erasure_is_told() {
    let mut rows = chain(4);
    for row in &mut rows[1..3] {
        row.content = None;
    }
    let body = r#"{"erasure_id":"00000000-0000-0000-0000-000000000003","places":[2],"rows":1}"#;
    let last = rows.last().unwrap();
    let new = New {
        kind: RecordKind::Erasure,
        tenant_id: last.tenant_id,
        env: last.env,
        attempt_id: AttemptId(Uuid::from_u128(3)),
        dial_n: 0,
        campaign_id: None,
        number_hash: None,
        email_hash: None,
        consent_id: None,
        body: body.into(),
        content: None,
        content_sha256: None,
    };
    rows.push(placed(new, (last.n, &last.hash), last.at));
    let mut seen = Seen::default();
    for row in &rows {
        seen.add(Line::of(row).unwrap(), None).unwrap();
    }
    assert_eq!((seen.blanked.len(), seen.unexplained()), (2, vec![3]));
}
