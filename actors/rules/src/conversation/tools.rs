//! What an agent can do beside talking: the built-in tools, and its user's functions.
use entities::{
    agent::{Definition, Disposition, Question, QuestionType},
    function::Model as Function,
    values::E164,
};
use serde_json::{Value, json};

pub const TRANSFER: &str = "transfer_call";
pub const END: &str = "end_call";
pub const DISPOSE: &str = "set_disposition";
pub const ANSWER: &str = "record_answer";

/// Names that no function of a user can have.
pub const BUILT_IN: [&str; 4] = [TRANSFER, END, DISPOSE, ANSWER];

/// What one agent may do in one call.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    pub functions: Vec<Function>,
    /// Name and number; the first is the default.
    pub targets: Vec<(String, E164)>,
    pub dispositions: Vec<Disposition>,
    pub questions: Vec<Question>,
}

impl ToolSet {
    pub fn new(
        definition: &Definition,
        functions: Vec<Function>,
        dispositions: &[Disposition],
        operator: Option<E164>,
    ) -> Self {
        let own = definition.transfer.iter().flat_map(|transfer| {
            let others = transfer
                .targets
                .iter()
                .map(|target| (target.name.to_string(), target.number.clone()));
            std::iter::once(("default".to_owned(), transfer.number.clone())).chain(others)
        });
        let mut targets: Vec<_> = own.collect();
        if targets.is_empty() {
            targets.extend(operator.map(|number| ("default".to_owned(), number)));
        }
        let dispositions = if dispositions.is_empty() {
            definition.dispositions.clone()
        } else {
            dispositions.to_vec()
        };
        ToolSet {
            functions,
            targets,
            dispositions,
            questions: definition.questions.clone(),
        }
    }

    /// On a line from which nobody can be called.
    pub fn without_transfer(mut self) -> Self {
        self.targets.clear();
        self
    }

    /// The tools as a model is told of them.
    pub fn tools(&self) -> Vec<Tool> {
        let mut tools: Vec<Tool> = self.functions.iter().map(of_function).collect();
        if !self.targets.is_empty() {
            let names: Vec<&str> = self.targets.iter().map(|(name, _)| name.as_str()).collect();
            tools.push(tool(
                TRANSFER,
                "Hand the call over to a person. Say so first.",
                json!({ "target": { "enum": names } }),
                &[],
            ));
        }
        tools.push(tool(END, "End the call. Say goodbye first.", json!({}), &[]));
        if !self.dispositions.is_empty() {
            let codes: Vec<&str> = self.dispositions.iter().map(|one| &*one.code).collect();
            tools.push(tool(
                DISPOSE,
                &described(&self.dispositions),
                json!({ "code": { "enum": codes }, "note": { "type": "string", "maxLength": 1000 } }),
                &["code"],
            ));
        }
        if !self.questions.is_empty() {
            let keys: Vec<&str> = self.questions.iter().map(|one| &*one.key).collect();
            tools.push(tool(
                ANSWER,
                &asked(&self.questions),
                json!({ "key": { "enum": keys }, "value": {} }),
                &["key", "value"],
            ));
        }
        tools
    }

    /// The number behind a name; without one the default.
    pub fn target(&self, name: Option<&str>) -> Option<&E164> {
        let wanted = name.unwrap_or("default");
        self.targets
            .iter()
            .find(|(known, _)| known == wanted)
            .map(|(_, number)| number)
    }
}

fn tool(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}

fn of_function(function: &Function) -> Tool {
    Tool {
        name: function.name.clone(),
        description: function.definition.description.to_string(),
        parameters: function.definition.parameters.clone(),
    }
}

fn described(dispositions: &[Disposition]) -> String {
    let each = dispositions.iter().map(|one| {
        let label = one.label.as_deref().unwrap_or(&one.code);
        format!("`{}`: {}", &*one.code, one.description.as_deref().unwrap_or(label))
    });
    format!(
        "Say how the call went, when it is clear. {}",
        each.collect::<Vec<_>>().join("; ")
    )
}

fn asked(questions: &[Question]) -> String {
    let each = questions.iter().map(|one| format!("`{}`: {}", &*one.key, &*one.text));
    format!("Note what was answered. {}", each.collect::<Vec<_>>().join("; "))
}

/// Is this an answer of the question's type? Answers it as it is kept.
pub fn fits(question: &Question, value: &Value) -> Option<Value> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
    match question.r#type {
        QuestionType::Text => {
            let text = text
                .map(str::to_owned)
                .or_else(|| value.is_number().then(|| value.to_string()))?;
            Some(text.chars().take(500).collect::<String>().into())
        }
        QuestionType::Number => {
            let number = value
                .as_f64()
                .or_else(|| text?.parse().ok())
                .filter(|number| number.is_finite())?;
            serde_json::Number::from_f64(number).map(|exact| value.as_i64().map_or(Value::Number(exact), Value::from))
        }
        QuestionType::Boolean => value.as_bool().map(Value::Bool),
        QuestionType::Choice => {
            let chosen = question
                .options
                .iter()
                .find(|option| text.is_some_and(|text| option.eq_ignore_ascii_case(text)))?;
            Some(Value::String(chosen.to_string()))
        }
        QuestionType::Date => text?
            .parse::<chrono::NaiveDate>()
            .ok()
            .map(|date| date.to_string().into()),
    }
}

/// A tool that the model may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// JSON Schema.
    pub parameters: serde_json::Value,
}
