//! From a table of lists to what holds them: so a list that is added is looked at and written.

/// Makes the struct, its `is_empty` and `replaced`, and `write_lists`, which writes list by list in the table's order, each of all that
/// one transaction commits.
///
/// A line is `name: type => how, key("kind", field);`. How: a policy of `OnConflict`, `with(function)`, which adds
/// to the batch, `by(function)`, which writes after all before it, or `elsewhere` if another step sees to it. The key is for rows that
/// are replaced: what they are, and where their id is.
macro_rules! changes {
    (@write by ($with:path), $db:expr, $batch:expr, $all:expr, $list:ident) => {
        let rows: Vec<_> = $all.iter().flat_map(|one| one.$list.iter().cloned()).collect();
        if !rows.is_empty() {
            $batch.flush().await?;
            $with($db, &rows).await?;
        }
    };
    (@write with ($with:path), $db:expr, $batch:expr, $all:expr, $list:ident) => {
        let rows: Vec<_> = $all.iter().flat_map(|one| &one.$list).collect();
        $with(&mut $batch, &rows).await?;
    };
    (@write elsewhere, $db:expr, $batch:expr, $all:expr, $list:ident) => {};
    (@write $policy:ident, $db:expr, $batch:expr, $all:expr, $list:ident) => {
        let rows: Vec<_> = $all.iter().flat_map(|one| &one.$list).collect();
        $batch.save(&rows, OnConflict::$policy).await?;
    };
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[$doc:meta])*
                $list:ident: $rows:ty => $how:ident $(($with:path))? $(, key($kind:literal, $($id:tt).+))?;
            )+
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $( $(#[$doc])* pub $list: $rows, )+
        }

        impl $name {
            pub fn is_empty(&self) -> bool {
                $( self.$list.is_empty() )&&+
            }

            /// The rows that this replaces.
            fn replaced(&self) -> Vec<(&'static str, Uuid)> {
                let mut keys = Vec::new();
                $( $( keys.extend(self.$list.iter().map(|row| ($kind, row.$($id).+.0))); )? )+
                keys
            }

            async fn write_lists(db: &Transaction, all: &[&$name]) -> Result<()> {
                let mut batch = Batch::new(db);
                $( changes!(@write $how $(($with))?, db, batch, all, $list); )+
                batch.flush().await
            }
        }
    };
}
pub(super) use changes;
