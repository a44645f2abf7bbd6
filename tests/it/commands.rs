//! Every command line that the documentation shows is one that the program takes: in shell blocks, in running text, in tables
//! of commands and of flags.
use callboard::cli::Cli;
use clap::{Command, CommandFactory, Parser, error::ErrorKind};
use std::{fs, path::Path};

/// A page's name and text.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = docs
        .filter(|path| path.extension().is_some_and(|kind| kind == "md"))
        .collect();
    files.push(root.join("README.md"));
    files.sort();
    let read = |path: &std::path::PathBuf| (path.display().to_string(), fs::read_to_string(path).unwrap());
    files.iter().map(read).collect()
}

/// The commands of a shell script, each as its words.
fn script(text: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(char) = rest.next() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(char),
            (None, '\'' | '"') => {
                quote = Some(char);
                word = Some(word.take().unwrap_or_default());
            }
            // The line goes on.
            (None, '\\') if rest.peek() == Some(&'\n') => {
                rest.next();
            }
            (None, '#') if word.is_none() => while rest.next_if(|char| *char != '\n').is_some() {},
            (None, '|' | ';' | '\n') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

/// The words from `callboard` on, placeholders filled in; `None`: it is another program's.
fn ours(words: &[String]) -> Option<Vec<String>> {
    let is_assignment =
        |word: &&String| word.contains('=') && word.starts_with(|first: char| first.is_ascii_uppercase());
    let set = words.iter().take_while(is_assignment).count();
    let words = &words[set..];
    (words.first()? == "callboard").then(|| words.iter().map(|word| filled(word)).collect())
}

/// What stands for something else, as something.
fn filled(word: &str) -> String {
    let word = word.trim_matches(['[', ']']);
    match word {
        "URL" => "http://127.0.0.1:9000/hook".into(),
        "N" | "SECONDS" | "UNIX_SECONDS" => "5".into(),
        "EVENT_ID" | "ID" | "$ID" => "0190a1b2-0000-7000-8000-000000000001".into(),
        "PATTERNS" => "*".into(),
        _ => word.replace('$', "x"),
    }
}

/// The subcommand that the words lead to, with how many of them lead there.
fn leads_to<'a>(root: &'a Command, words: &[String]) -> (&'a Command, usize) {
    let (mut at, mut steps) = (root, 1);
    while let Some(next) = words.get(steps).and_then(|word| at.find_subcommand(word)) {
        (at, steps) = (next, steps + 1);
    }
    (at, steps)
}

/// The value that a flag at the end is waiting for.
fn missing_value(root: &Command, words: &[String]) -> Option<String> {
    let name = words.last()?.strip_prefix("--")?;
    let (command, _) = leads_to(root, words);
    let flag = command.get_arguments().find(|flag| flag.get_long() == Some(name))?;
    let value = flag.get_value_names()?.first()?;
    flag.get_action().takes_values().then(|| filled(value))
}

/// What is wrong with it. Text that only mentions a command may leave out what the command needs.
fn fault(words: &[String], is_whole: bool) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    let is_left_out = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    (is_whole || !is_left_out).then(|| error.to_string())
}

/// The texts between backticks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[derive(Default)]
struct Shown {
    whole: usize,
    mentioned: usize,
    flags: usize,
    faults: Vec<String>,
}

impl Shown {
    fn note(&mut self, page: &str, words: &[String], is_whole: bool) {
        if let Some(fault) = fault(words, is_whole) {
            self.faults.push(format!("{page}: {}\n{fault}", words.join(" ")));
        }
    }

    fn page(&mut self, root: &Command, name: &str, text: &str) {
        let (mut block, mut table_of) = (None::<String>, None::<Vec<String>>);
        // The command that was spoken of last: a table of flags without a name is about that one.
        let mut last: Vec<String> = Vec::new();
        for line in text.lines() {
            if line.starts_with("```") {
                if let Some(script_text) = block.take() {
                    for words in script(&script_text).iter().filter_map(|words| ours(words)) {
                        self.whole += 1;
                        self.note(name, &words, true);
                        last = words[..leads_to(root, &words).1].to_vec();
                    }
                } else {
                    block = Some(String::new());
                }
                continue;
            }
            if let Some(block) = &mut block {
                block.push_str(line);
                block.push('\n');
                continue;
            }
            if !line.starts_with('|') {
                table_of = None;
            }
            let first_cell = line.strip_prefix('|').and_then(|rest| rest.split('|').next());
            if let Some(cell) = first_cell
                && cell.trim_start().starts_with("Flag")
            {
                let named = code(cell)
                    .next()
                    .map(|of| [vec!["callboard".to_owned()], words_of(of)].concat());
                table_of = Some(named.unwrap_or_else(|| last.clone()));
                continue;
            }
            if let (Some(command), Some(flag)) = (&table_of, first_cell.and_then(|cell| code(cell).next())) {
                self.flags += 1;
                let flag = words_of(flag).into_iter().map(|word| filled(&word));
                let words: Vec<String> = command.iter().cloned().chain(flag).collect();
                self.note(name, &words, false);
            }
            for text in code(line).filter(|text| text.starts_with("callboard ")) {
                let Some(mut words) = script(text).first().and_then(|words| ours(words)) else {
                    continue;
                };
                words.extend(missing_value(root, &words));
                self.mentioned += 1;
                self.note(name, &words, false);
                last = words[..leads_to(root, &words).1].to_vec();
            }
            // `callboard keys create`, `list`, `revoke`: the others are its siblings.
            if let Some(cell) = first_cell
                && cell.trim_start().starts_with("`callboard ")
            {
                let (parent, _) = last.split_at(last.len() - 1);
                for sibling in code(cell).skip(1) {
                    self.mentioned += 1;
                    let words = [parent, &words_of(sibling)[..]].concat();
                    self.note(name, &words, false);
                }
            }
        }
    }
}

#[test]
fn every_command_that_the_documentation_shows_is_taken() {
    let mut shown = Shown::default();
    let mut root = Cli::command();
    root.build();
    for (name, text) in pages() {
        shown.page(&root, &name, &text);
    }
    assert!(shown.faults.is_empty(), "{}", shown.faults.join("\n"));
    let found = (shown.whole, shown.mentioned, shown.flags);
    assert!(
        shown.whole >= 15 && shown.mentioned >= 30 && shown.flags >= 12,
        "so few were read: {found:?}"
    );
}

/// The reader itself: what is wrong is found.
#[test]
fn a_command_that_is_not_taken_is_found() {
    let page = "```sh\nX=1 callboard tenant list\nprintf 'a\\n' | callboard user set-password --email a@b.co --password\n```\n\
                `callboard tenant set --workspace acme --voice-clones off` `callboard keys crate`\n\
                | `callboard keys create`, `lists` | |\n\n| Flag of `demo` | |\n|---|---|\n| `--contacts FILE.csv` | |\n| `--kept` | |\n";
    let mut root = Cli::command();
    root.build();
    let mut shown = Shown::default();
    shown.page(&root, "x.md", page);
    let faults: Vec<_> = shown.faults.iter().map(|fault| fault.lines().next().unwrap()).collect();
    assert_eq!(
        faults,
        [
            "x.md: callboard user set-password --email a@b.co --password",
            "x.md: callboard keys crate",
            "x.md: callboard keys lists",
            "x.md: callboard demo --kept"
        ]
    );
    assert_eq!((shown.whole, shown.mentioned, shown.flags), (2, 4, 2));
}

#[test]
fn what_a_plan_allows_is_said_with_on_and_off() {
    Cli::command().debug_assert();
    let set = |more: &[&str]| {
        let words = ["callboard", "tenant", "set", "--workspace", "acme"];
        Cli::try_parse_from(words.iter().chain(more))
            .err()
            .map(|error| error.kind())
    };
    for taken in [
        &["--voice-clones", "on"][..],
        &["--voice-clones", "off"],
        &["--country", "DE"],
        &["--timezone", "Europe/Berlin"],
        &[
            "--country",
            "DE",
            "--timezone",
            "Europe/Berlin",
            "--voice-clones",
            "off",
        ],
    ] {
        assert_eq!(set(taken), None, "{taken:?}");
    }
    assert_eq!(set(&[]), Some(ErrorKind::MissingRequiredArgument), "nothing to set");
    for refused in [
        ["--voice-clones", "maybe"],
        ["--country", "Germany"],
        ["--timezone", "Berlin"],
    ] {
        assert_eq!(set(&refused), Some(ErrorKind::ValueValidation), "{refused:?}");
    }
}
