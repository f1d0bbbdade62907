//! Tasks that exist: look at one, list them, cancel one.

use super::{Engine, EngineError, fold::fold};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use nuncio_core::{
    CancelTask, GetTask, ListTasks, Owner, Principal, ProtocolError, Response, Task, TaskId,
    TaskPage, TaskState, TaskView, Timestamp,
};
use nuncio_store::{ListCursor, ListQuery, StoreError};
use std::sync::Arc;

/// Tasks on a page where the request does not say.
const DEFAULT_PAGE_SIZE: u32 = 50;

impl Engine {
    /// A task, as committed.
    pub(crate) async fn get(
        &self,
        principal: &Principal,
        get: GetTask,
    ) -> Result<Response, EngineError> {
        let view = TaskView {
            history: get.history_length,
            artifacts: true,
        };
        let task = self.committed_task(&principal.owner(), &get.id).await?;
        Ok(Response::Task(task.view(view)))
    }

    async fn committed_task(&self, owner: &Owner, id: &TaskId) -> Result<Task, EngineError> {
        if let Some(live) = self.shared.in_use(owner, id) {
            return Ok(live.task());
        }
        let stored = self.shared.store.load(owner, id).await?;
        Ok(fold(&self.shared, owner, &stored, u64::MAX).await?.0)
    }

    /// A page of the caller's tasks.
    pub(crate) async fn list(
        &self,
        principal: &Principal,
        list: ListTasks,
    ) -> Result<Response, EngineError> {
        let owner = principal.owner();
        let page_size = list.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
        let query = ListQuery {
            context_id: list.context_id,
            state: list.state,
            status_after: list.status_after,
            after: list.page_token.as_deref().map(read_token).transpose()?,
            limit: page_size,
        };
        let page = self.shared.store.list(&owner, &query).await?;
        let view = TaskView {
            history: list.history_length,
            artifacts: list.include_artifacts,
        };
        let mut tasks = Vec::with_capacity(page.tasks.len());
        for stored in page.tasks {
            let task = match self.shared.in_use(&owner, &stored.id) {
                Some(live) => live.task(),
                None => match fold(&self.shared, &owner, &stored, u64::MAX).await {
                    Ok((task, _)) => task,
                    // Pruned since the page was read.
                    Err(StoreError::NotFound) => continue,
                    Err(error) => return Err(error.into()),
                },
            };
            tasks.push(task.view(view));
        }
        Ok(Response::TaskPage(TaskPage {
            tasks,
            next_page_token: page.next.as_ref().map(write_token).unwrap_or_default(),
            page_size,
            total_size: page.total,
        }))
    }

    /// Cancels a task: an agent that watches for it is told and given time to end by itself. Then
    /// the task is canceled whatever the agent does.
    pub(crate) async fn cancel(
        &self,
        principal: &Principal,
        cancel: &CancelTask,
    ) -> Result<Response, EngineError> {
        let live = self.shared.open(&principal.owner(), &cancel.id).await?;
        if live.has_ended() {
            return Err(EngineError::NotCancelable);
        }
        if live.request_cancel() {
            let (grace, told) = (self.limits().cancel_grace, Arc::clone(&live));
            // Apart from the caller, who may go away before the time is over.
            tokio::spawn(async move {
                // What comes of it is looked at below.
                let _ = tokio::time::timeout(grace, told.ended()).await;
                told.force(TaskState::Canceled, None);
            });
        } else {
            live.force(TaskState::Canceled, None);
        }
        match live.ended().await? {
            TaskState::Canceled => Ok(Response::Task(live.task())),
            _ => Err(EngineError::NotCancelable),
        }
    }
}

fn write_token(cursor: &ListCursor) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{}:{}", cursor.since.as_millis(), cursor.id))
}

fn read_token(token: &str) -> Result<ListCursor, ProtocolError> {
    let read = || {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (since, id) = text.split_once(':')?;
        let since = Timestamp::from_millis(since.parse().ok()?);
        Some(ListCursor {
            since,
            id: TaskId::new(id).ok()?,
        })
    };
    read().ok_or_else(|| {
        ProtocolError::invalid_field("pageToken", "must be a nextPageToken of an earlier page")
    })
}
