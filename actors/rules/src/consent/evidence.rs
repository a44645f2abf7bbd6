//! Files that prove a consent: which kinds are taken, and whether a file is what it says it is.
use entities::{Error, Result};

/// Bytes of one file.
pub const MAX_FILE: usize = 10 * 1024 * 1024;
/// Of all files of a workspace: they are kept for years, in the operator's store.
pub const MAX_OF_WORKSPACE: i64 = 10 * 1024 * 1024 * 1024;

/// May one more of so many bytes be stored, where there are that many?
pub fn check_room(stored: i64, more: i64) -> Result<()> {
    match stored.saturating_add(more) <= MAX_OF_WORKSPACE {
        true => Ok(()),
        false => Err(Error::PlanLimit(format!(
            "the evidence of a workspace takes at most {MAX_OF_WORKSPACE} bytes, and there are {stored}: delete consents that need not be \
             kept any more, or send a smaller file"
        ))),
    }
}

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub content_type: &'static str,
    /// What its name ends in when it is handed out.
    pub extension: &'static str,
}

const fn kind(content_type: &'static str, extension: &'static str) -> Kind {
    Kind {
        content_type,
        extension,
    }
}

const PDF: Kind = kind("application/pdf", "pdf");
const PNG: Kind = kind("image/png", "png");
const JPEG: Kind = kind("image/jpeg", "jpg");
const WEBP: Kind = kind("image/webp", "webp");
const WAV: Kind = kind("audio/wav", "wav");
const MPEG: Kind = kind("audio/mpeg", "mp3");
const OGG: Kind = kind("audio/ogg", "ogg");
const FLAC: Kind = kind("audio/flac", "flac");
const TEXT: Kind = kind("text/plain", "txt");

pub const KINDS: [Kind; 9] = [PDF, PNG, JPEG, WEBP, WAV, MPEG, OGG, FLAC, TEXT];

/// The kind that a request's `Content-Type` names.
pub fn named(content_type: &str) -> Option<Kind> {
    let bare = content_type.split(';').next().unwrap_or_default().trim();
    let bare = bare.to_ascii_lowercase();
    let usual = match bare.as_str() {
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav",
        "audio/mp3" => "audio/mpeg",
        "audio/x-flac" => "audio/flac",
        "image/jpg" => "image/jpeg",
        other => other,
    };
    KINDS.into_iter().find(|kind| kind.content_type == usual)
}

/// The kind of a stored file; one that nobody knows any more is bytes.
pub fn stored(content_type: &str) -> Kind {
    named(content_type).unwrap_or(kind("application/octet-stream", "bin"))
}

/// Does the file begin as that kind does? So nothing is handed out as what it is not.
pub fn check(kind: Kind, file: &[u8]) -> std::result::Result<(), String> {
    if file.is_empty() {
        return Err("the file is empty".into());
    }
    if file.len() > MAX_FILE {
        return Err(format!("the file is larger than {MAX_FILE} bytes"));
    }
    let begins = |with: &[u8]| file.starts_with(with);
    let riff = |form: &[u8]| begins(b"RIFF") && file.get(8..12) == Some(form);
    let is_so = match kind.content_type {
        // Some programs write a few bytes before it.
        "application/pdf" => {
            let beginning = file.get(..file.len().min(1024)).unwrap_or_default();
            beginning.windows(5).any(|at| at == b"%PDF-")
        }
        "image/png" => begins(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => begins(&[0xff, 0xd8, 0xff]),
        "image/webp" => riff(b"WEBP"),
        "audio/wav" => riff(b"WAVE"),
        "audio/mpeg" => begins(b"ID3") || matches!(file, [0xff, second, ..] if second & 0xe0 == 0xe0),
        "audio/ogg" => begins(b"OggS"),
        "audio/flac" => begins(b"fLaC"),
        "text/plain" => std::str::from_utf8(file).is_ok_and(|text| !text.contains('\0')),
        _ => false,
    };
    if is_so {
        Ok(())
    } else {
        Err(format!(
            "the file is not {}: send it with the type that it has",
            kind.content_type
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_it_says_it_is() {
        let wav = b"RIFF\0\0\0\0WAVEfmt ".as_slice();
        let files: [(&str, &[u8]); 10] = [
            ("application/pdf", b"%PDF-1.7\n"),
            ("application/pdf", b"\xef\xbb\xbf%PDF-1.4"),
            ("image/png", b"\x89PNG\r\n\x1a\n\0"),
            ("image/jpeg", b"\xff\xd8\xff\xe0"),
            ("image/webp", b"RIFF\0\0\0\0WEBPVP8 "),
            ("audio/wav", wav),
            ("audio/mpeg", b"ID3\x04"),
            ("audio/ogg", b"OggS\0"),
            ("audio/flac", b"fLaC\0"),
            ("text/plain", "Ja, ich möchte angerufen werden.".as_bytes()),
        ];
        for (content_type, file) in files {
            let kind = named(content_type).unwrap();
            assert_eq!(check(kind, file), Ok(()), "{content_type}");
            for other in KINDS.into_iter().filter(|other| *other != kind && *other != TEXT) {
                assert!(check(other, file).is_err(), "{content_type} as {}", other.content_type);
            }
            assert!(check(kind, b"").is_err());
        }
        let frame = named("audio/mp3").unwrap();
        assert_eq!(
            (frame.content_type, check(frame, b"\xff\xfb\x90")),
            ("audio/mpeg", Ok(()))
        );
        assert!(check(TEXT, b"a\0b").is_err());
        assert!(check(TEXT, &[0xff, 0xfe]).is_err());
        assert!(check(TEXT, &vec![b'a'; MAX_FILE]).is_ok());
        assert!(check(TEXT, &vec![b'a'; MAX_FILE + 1]).is_err());
    }

    #[test]
    fn a_workspace_fills_no_store() {
        for (stored, more, fits) in [
            (0, MAX_OF_WORKSPACE, true),
            (MAX_OF_WORKSPACE - 5, 5, true),
            (MAX_OF_WORKSPACE - 5, 6, false),
            (MAX_OF_WORKSPACE, 1, false),
            (MAX_OF_WORKSPACE, i64::MAX, false),
        ] {
            assert_eq!(check_room(stored, more).is_ok(), fits, "{stored} {more}");
        }
    }

    #[test]
    fn only_these_kinds_are_taken() {
        for (given, found) in [
            ("application/pdf", Some(PDF)),
            ("Text/Plain; charset=utf-8", Some(TEXT)),
            ("audio/x-wav", Some(WAV)),
            ("image/jpg", Some(JPEG)),
            ("text/html", None),
            ("image/svg+xml", None),
            ("application/octet-stream", None),
            ("", None),
        ] {
            assert_eq!(named(given), found, "{given}");
        }
        assert_eq!(stored("application/x-unknown").content_type, "application/octet-stream");
    }
}
