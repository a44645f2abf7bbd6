//! From a table of lists to what holds them: so a list that is added is merged, looked at and written.
use crate::{
    ids::{CampaignId, TenantScoped},
    tally,
};
use std::collections::BTreeMap;

/// Makes the struct, its `merge`, `is_empty` and `written`, and `write_lists`, which writes list by list in the table's order.
///
/// A line is `name: type => how, key("kind", field);`. How: a policy of `OnConflict`, `by(function)`, or `elsewhere` if
/// another step sees to it. The key is for rows that are replaced: what they are, and where their id is.
macro_rules! changes {
    (@write by ($with:path), $db:expr, $rows:expr) => {
        $with($db, $rows).await?;
    };
    (@write elsewhere, $db:expr, $rows:expr) => {};
    (@write $policy:ident, $db:expr, $rows:expr) => {
        bulk::save($db, $rows, OnConflict::$policy).await?;
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
            pub fn merge(&mut self, other: $name) {
                $( table::Merge::merge(&mut self.$list, other.$list); )+
            }

            pub fn is_empty(&self) -> bool {
                $( self.$list.is_empty() )&&+
            }

            /// The rows that this replaces.
            pub fn written(&self) -> Vec<(&'static str, Uuid)> {
                let mut keys = Vec::new();
                $( $( keys.extend(self.$list.iter().map(|row| ($kind, row.$($id).+.0))); )? )+
                keys
            }

            async fn write_lists(&self, db: &Transaction) -> Result<()> {
                $( changes!(@write $how $(($with))?, db, &self.$list); )+
                Ok(())
            }
        }
    };
}
pub(super) use changes;

/// Two of the same list in one.
pub(super) trait Merge {
    fn merge(&mut self, other: Self);
}

impl<T> Merge for Vec<T> {
    fn merge(&mut self, other: Self) {
        self.extend(other);
    }
}

impl Merge for BTreeMap<TenantScoped<CampaignId>, tally::Model> {
    fn merge(&mut self, other: Self) {
        for (campaign, by) in other {
            *self.entry(campaign).or_insert_with(|| tally::Model::new(campaign.id)) += by;
        }
    }
}
