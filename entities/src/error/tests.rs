use super::sentence;

#[test]
fn a_message_names_its_field_once() {
    for (field, reason, expected) in [
        ("name", "must not be empty", "`name` must not be empty"),
        ("at", "`soon` is not a time", "`at`: `soon` is not a time"),
        (
            "to_number",
            "begins with +1900, which the operator does not allow",
            "`to_number` begins with +1900, which the operator does not allow",
        ),
        ("text", "give `text`, `html`, or both", "give `text`, `html`, or both"),
        ("", "send a JSON object", "send a JSON object"),
    ] {
        assert_eq!(sentence(field, reason), expected);
    }
}
