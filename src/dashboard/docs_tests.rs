//! The page shows all of a document, and nothing of it becomes markup.
use super::*;
use serde_json::json;

/// Every text of it tries to become markup.
fn document() -> Value {
    let evil = "<script>alert('\"&')</script>";
    let body = json!({ "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } } });
    let pet = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "minLength": 1, "maxLength": 9, "description": evil },
        "owner": { "anyOf": [{ "$ref": "#/components/schemas/Owner" }, { "type": "null" }] },
        "pets": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } },
        "kind": { "oneOf": [{ "required": ["tag"], "properties": { "tag": { "const": evil } } }] },
    } });
    let patch = json!({ "operationId": "patch_pet", "tags": ["system"] });
    let owner = json!({ "type": "object", "properties": { "<b>": { "enum": [evil], "default": evil } } });
    let post = json!({ "operationId": "post_pets", "tags": [evil], "description": evil, "security": [{ "key": [] }], "x-required-scope": evil,
        "parameters": [{ "name": evil, "in": "query" }, { "name": evil, "in": "header" }],
        "requestBody": body, "responses": { "201": body } });
    json!({
        "info": { "title": evil, "version": evil, "description": evil },
        "paths": { "/pets": { "post": post }, "/pets/{id}": { "patch": patch } },
        "webhooks": { "pet.<i>fed": { "post": { "summary": evil, "requestBody": body } } },
        "components": { "schemas": { "Pet": pet, "Owner": owner } },
    })
}

#[test]
fn nothing_of_the_document_becomes_markup() {
    let page = render(&document());
    for wrong in ["<script", "<b>", "<i>", "style=", "alert('"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    assert!(page.contains("&lt;script&gt;alert("));
}

#[test]
fn operations_and_events_can_be_linked() {
    let page = render(&document());
    for id in ["basics", "system", "post_pets", "patch_pet", "event-pet.&lt;i&gt;fed"] {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
}

#[test]
fn schemas_become_rows() {
    let document = document();
    let pet = resolve(&document, &json!({ "$ref": "#/components/schemas/Pet" }), DEPTH);
    let rows = fields(&pet, "", REQUIRED);
    assert_eq!(rows.matches(REQUIRED).count(), DEPTH);
    for part in [
        "1 to 9 characters",
        "owner.<wbr>&lt;b&gt;",
        "object or null",
        "pets[].<wbr>name",
    ] {
        assert!(rows.contains(part), "{part}");
    }
    let required = sample(&pet, "", "", 0);
    assert!(required.contains("Appointment booking") && !required.contains("owner"));
}
