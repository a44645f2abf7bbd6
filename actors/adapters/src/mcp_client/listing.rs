//! The tools of a server, a page after the other, as far as a list may go.
use super::{exchange::Exchange, fault::Fault};
use entities::function::McpToolName;
use serde_json::{Value, json};

/// Pages that are asked for.
const MAX_PAGES: usize = 10;
/// Tools that are listed.
pub const MAX_TOOLS: usize = 500;
/// Bytes of all pages together.
pub const LIST_LIMIT: usize = 1024 * 1024;
/// Bytes of one page.
const PAGE_LIMIT: usize = 512 * 1024;
/// Bytes of what leads to the next page.
const MAX_CURSOR: usize = 2_048;

/// A tool as its server describes it. Nothing of it has been looked at, but for its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: McpToolName,
    pub description: Option<String>,
    /// Its `inputSchema`; null if it has none.
    pub parameters: Value,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub tools: Vec<Tool>,
    /// The server has more than were asked for.
    pub has_more: bool,
}

/// Lists them, or only the one of that name; then no page is read behind the one that has it.
pub async fn list(exchange: &mut Exchange<'_>, wanted: Option<&str>) -> Result<Listing, Fault> {
    let mut listing = Listing::default();
    let (mut cursor, mut seen) = (None::<String>, 0);
    let before = exchange.taken;
    for _ in 0..MAX_PAGES {
        let params = match &cursor {
            Some(cursor) => json!({ "cursor": cursor }),
            None => json!({}),
        };
        let left = LIST_LIMIT.saturating_sub(exchange.taken - before);
        let mut page = exchange.ask("tools/list", &params, PAGE_LIMIT.min(left)).await?;
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else {
            return Err(Fault::Protocol("holds no list of tools"));
        };
        for tool in tools {
            seen += 1;
            if seen > MAX_TOOLS {
                listing.has_more = true;
                return Ok(listing);
            }
            // One whose name cannot be kept cannot be chosen.
            let Some(tool) = read(tool) else { continue };
            match wanted {
                Some(wanted) if *tool.name != *wanted => {}
                Some(_) => {
                    listing.tools.push(tool);
                    return Ok(listing);
                }
                None => listing.tools.push(tool),
            }
        }
        match page["nextCursor"].as_str() {
            None | Some("") => return Ok(listing),
            Some(next) if next.len() > MAX_CURSOR => {
                return Err(Fault::Protocol("holds a `nextCursor` that is too long"));
            }
            Some(next) => cursor = Some(next.to_owned()),
        }
    }
    listing.has_more = true;
    Ok(listing)
}

fn read(mut tool: Value) -> Option<Tool> {
    let fields = tool.as_object_mut()?;
    let name = McpToolName::parse(fields.get("name")?.as_str()?).ok()?;
    let description = fields.get("description").and_then(Value::as_str);
    Some(Tool {
        name,
        description: description.map(str::to_owned),
        parameters: fields.get_mut("inputSchema").map_or(Value::Null, Value::take),
    })
}
