//! Data of the events about the agent's work beside the conversation: jobs, sub-agents, goals, schedules, teams.

use super::session::ModelRoute;
use super::{Blocks, List};
use crate::json::JsonStr;

payload! {
    /// `todo/write`.
    pub struct TodoWrite<'a> {
        /// The whole list.
        todos: List<'a, Todo<'a>> = "todos",
    }
}

payload! {
    /// One thing to do.
    pub struct Todo<'a> {
        /// What.
        content: JsonStr<'a> = "content",
        /// How far.
        status: TaskStatus<'a> = "status",
    }
}

open_enum! {
    /// How far a task is.
    pub enum TaskStatus {
        Pending = "pending",
        InProgress = "in_progress",
        Completed = "completed",
        Deleted = "deleted",
    }
}

payload! {
    /// `job/registered`.
    pub struct JobRegistered<'a> {
        /// Id of the job.
        job_id: JsonStr<'a> = "jobId",
        /// The session that it belongs to.
        owner: JsonStr<'a> = "owner",
        /// Such as `bash`.
        kind: JsonStr<'a> = "kind",
        /// In one line.
        label: JsonStr<'a> = "label",
        /// Unix time in milliseconds.
        started_at: u64 = "startedAt",
        /// The tool call that has started it.
        tool_call: Option<JobToolCall<'a>> = "toolCall",
    }
}

payload! {
    /// The tool call that has started a job.
    pub struct JobToolCall<'a> {
        /// The call.
        call_id: JsonStr<'a> = "callId",
        /// The call of the model that it began with.
        root_call_id: JsonStr<'a> = "rootCallId",
    }
}

payload! {
    /// `job/settled`.
    pub struct JobSettled<'a> {
        /// Id of the job.
        job_id: JsonStr<'a> = "jobId",
        /// The session that it belongs to.
        owner: JsonStr<'a> = "owner",
        /// Such as `bash`.
        kind: JsonStr<'a> = "kind",
        /// In one line.
        label: JsonStr<'a> = "label",
        /// Unix time in milliseconds.
        started_at: u64 = "startedAt",
        /// The tool call that has started it.
        tool_call: Option<JobToolCall<'a>> = "toolCall",
        /// Unix time in milliseconds.
        finished_at: u64 = "finishedAt",
        /// How it went.
        status: JobStatus<'a> = "status",
        /// What ended it.
        cause: JobCause<'a> = "cause",
        /// Whether the tool has told it by itself.
        producer_reported: bool = "producerReported",
        /// More about it, such as the exit code.
        detail: Option<JsonStr<'a>> = "detail",
    }
}

open_enum! {
    /// How a job went.
    pub enum JobStatus {
        Completed = "completed",
        Failed = "failed",
        Killed = "killed",
    }
}

open_enum! {
    /// What has ended a job.
    pub enum JobCause {
        Producer = "producer",
        Kill = "kill",
        Teardown = "teardown",
    }
}

payload! {
    /// `subagent/catalog`.
    pub struct SubagentCatalog<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// Session of the sub-agent.
        child_id: JsonStr<'a> = "childId",
        /// Unix time in milliseconds.
        child_created_at: u64 = "childCreatedAt",
        /// What can be done with it.
        mode: SubagentMode<'a> = "mode",
        /// In one line.
        label: Option<JsonStr<'a>> = "label",
    }
}

open_enum! {
    /// What can be done with a sub-agent.
    pub enum SubagentMode {
        OneShot = "one-shot",
        Continuable = "continuable",
        External = "external",
        Unknown = "unknown",
    }
}

payload! {
    /// `subagent/descriptor`.
    pub struct SubagentDescriptor<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// What can be done with it.
        mode: SubagentMode<'a> = "mode",
        /// What has made it.
        provider: JsonStr<'a> = "provider",
        /// In one line.
        label: Option<JsonStr<'a>> = "label",
        /// Provider of its model.
        agent_provider: Option<JsonStr<'a>> = "agentProvider",
        /// Its model.
        agent_model: Option<JsonStr<'a>> = "agentModel",
        /// How much its model thinks.
        agent_reasoning_effort: Option<JsonStr<'a>> = "agentReasoningEffort",
        /// Who it is told to be.
        persona: Option<JsonStr<'a>> = "persona",
        /// The tools that it may use.
        tool_filter: Option<ToolFilter<'a>> = "toolFilter",
    }
}

payload! {
    /// The tools that a sub-agent may use.
    pub struct ToolFilter<'a> {
        /// These and no others.
        allow: Option<List<'a, JsonStr<'a>>> = "allow",
        /// Not these.
        deny: Option<List<'a, JsonStr<'a>>> = "deny",
    }
}

payload! {
    /// `subagent/model-selection-policy`.
    pub struct SubagentModelSelectionPolicy<'a> {
        /// The models that sub-agents may use.
        allowed_models: List<'a, ModelRoute<'a>> = "allowedModels",
    }
}

payload! {
    /// `goal/change`.
    pub struct GoalChange<'a> {
        /// `goal/change`.
        kind: JsonStr<'a> = "kind",
        /// Version of this shape.
        version: u64 = "version",
        /// What was done to it.
        operation: GoalOperation<'a> = "operation",
        /// The goal as it is now; not where it was cleared.
        goal: Option<Goal<'a>> = "goal",
        /// Rounds so far.
        rounds_started: Option<u64> = "roundsStarted",
        /// Unix time in milliseconds.
        created_at: Option<u64> = "createdAt",
        /// Unix time in milliseconds.
        updated_at: Option<u64> = "updatedAt",
        /// The goal that was cleared.
        cleared: Option<GoalRef<'a>> = "cleared",
        /// Unix time in milliseconds.
        cleared_at: Option<u64> = "clearedAt",
    }
}

open_enum! {
    /// What was done to a goal.
    pub enum GoalOperation {
        Create = "create",
        Edit = "edit",
        Pause = "pause",
        Resume = "resume",
        Complete = "complete",
        Block = "block",
        Clear = "clear",
    }
}

open_enum! {
    /// How a goal stands.
    pub enum GoalPhase {
        Active = "active",
        Paused = "paused",
        Blocked = "blocked",
        Complete = "complete",
    }
}

payload! {
    /// A goal.
    pub struct Goal<'a> {
        /// Its id.
        id: JsonStr<'a> = "id",
        /// Counts its changes.
        revision: u64 = "revision",
        /// What is to be reached.
        objective: JsonStr<'a> = "objective",
        /// How it stands.
        phase: GoalPhase<'a> = "phase",
        /// How many rounds there may be.
        max_goal_rounds: u64 = "maxGoalRounds",
        /// Why it is blocked.
        blocked_reason: Option<GoalBlockedReason<'a>> = "blockedReason",
    }
}

payload! {
    /// Why a goal is blocked.
    pub struct GoalBlockedReason<'a> {
        /// For programs.
        code: JsonStr<'a> = "code",
        /// For people.
        message: JsonStr<'a> = "message",
    }
}

payload! {
    /// Names a goal.
    pub struct GoalRef<'a> {
        /// Its id.
        id: JsonStr<'a> = "id",
        /// Counts its changes.
        revision: u64 = "revision",
    }
}

payload! {
    /// `schedule/change`.
    pub struct ScheduleChange<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// What was done to it.
        operation: ScheduleOperation<'a> = "operation",
        /// The schedule, where it is new.
        schedule: Option<Schedule<'a>> = "schedule",
        /// Id of the schedule, where it is not.
        id: Option<JsonStr<'a>> = "id",
        /// When a recurring one was due, as ISO 8601.
        accepted_at: Option<JsonStr<'a>> = "acceptedAt",
    }
}

open_enum! {
    /// What was done to a schedule.
    pub enum ScheduleOperation {
        Create = "create",
        Delete = "delete",
        Dispatch = "dispatch",
    }
}

payload! {
    /// A prompt that comes by itself.
    pub struct Schedule<'a> {
        /// Its id.
        id: JsonStr<'a> = "id",
        /// `after`, `at` or `every`.
        kind: JsonStr<'a> = "kind",
        /// In one line.
        title: Option<JsonStr<'a>> = "title",
        /// What the agent is told.
        prompt: JsonStr<'a> = "prompt",
        /// With `after`.
        after_seconds: Option<u64> = "afterSeconds",
        /// With `every`.
        every_seconds: Option<u64> = "everySeconds",
        /// When it is due, as ISO 8601.
        scheduled_at: JsonStr<'a> = "scheduledAt",
    }
}

payload! {
    /// `team/member`.
    pub struct TeamMember<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// The team.
        team_id: JsonStr<'a> = "teamId",
        /// The member.
        member: Member<'a> = "member",
    }
}

payload! {
    /// A member of a team.
    pub struct Member<'a> {
        /// Its session.
        id: JsonStr<'a> = "id",
        /// Its name.
        name: JsonStr<'a> = "name",
        /// What it is for.
        description: JsonStr<'a> = "description",
        /// What has made it.
        provider: JsonStr<'a> = "provider",
        /// `fresh` or `fork`.
        context: JsonStr<'a> = "context",
        /// How far it is.
        phase: MemberPhase<'a> = "phase",
        /// What went wrong.
        error: Option<JsonStr<'a>> = "error",
    }
}

open_enum! {
    /// How far a member of a team is.
    pub enum MemberPhase {
        Provisioning = "provisioning",
        Active = "active",
        Failed = "failed",
    }
}

payload! {
    /// `team/task`.
    pub struct TeamTask<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// The team.
        team_id: JsonStr<'a> = "teamId",
        /// The task.
        task: Task<'a> = "task",
    }
}

payload! {
    /// A task of a team.
    pub struct Task<'a> {
        /// Its id.
        id: JsonStr<'a> = "id",
        /// Counts its changes.
        revision: u64 = "revision",
        /// In one line.
        subject: JsonStr<'a> = "subject",
        /// At length.
        description: JsonStr<'a> = "description",
        /// How far.
        status: TaskStatus<'a> = "status",
        /// The member that does it.
        owner_id: Option<JsonStr<'a>> = "ownerId",
        /// The tasks that come first.
        blocked_by: List<'a, JsonStr<'a>> = "blockedBy",
        /// Where it may write.
        write_scopes: List<'a, JsonStr<'a>> = "writeScopes",
    }
}

payload! {
    /// `team/message/queued`.
    pub struct TeamMessageQueued<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// The team.
        team_id: JsonStr<'a> = "teamId",
        /// The message.
        message: TeamMessage<'a> = "message",
    }
}

payload! {
    /// A message between members of a team.
    pub struct TeamMessage<'a> {
        /// Its id.
        id: JsonStr<'a> = "id",
        /// Session of the sender.
        sender_id: JsonStr<'a> = "senderId",
        /// Name of the sender.
        sender_name: JsonStr<'a> = "senderName",
        /// Session that it goes to.
        target_id: JsonStr<'a> = "targetId",
        /// What is said.
        content: Blocks<'a> = "content",
    }
}

payload! {
    /// `team/message/delivered`.
    pub struct TeamMessageDelivered<'a> {
        /// Version of this shape.
        version: u64 = "version",
        /// The team.
        team_id: JsonStr<'a> = "teamId",
        /// The message.
        message_id: JsonStr<'a> = "messageId",
        /// Session that it went to.
        target_id: JsonStr<'a> = "targetId",
    }
}

payload! {
    /// `tool-workflow/run-start`.
    pub struct WorkflowRunStart<'a> {
        /// Id of the run.
        run_id: JsonStr<'a> = "runId",
        /// Name of the script.
        name: JsonStr<'a> = "name",
    }
}

payload! {
    /// `tool-workflow/run-end`.
    pub struct WorkflowRunEnd<'a> {
        /// Id of the run.
        run_id: JsonStr<'a> = "runId",
        /// `completed`, `cancelled` or `error`.
        stop_reason: JsonStr<'a> = "stopReason",
    }
}

payload! {
    /// `tool-workflow/agent-start`.
    pub struct WorkflowAgentStart<'a> {
        /// Id of the run.
        run_id: JsonStr<'a> = "runId",
        /// Number of the agent in the run.
        seq: u64 = "seq",
        /// In one line.
        label: JsonStr<'a> = "label",
        /// Part of the script.
        phase: Option<JsonStr<'a>> = "phase",
        /// Session of the agent.
        child_id: JsonStr<'a> = "childId",
    }
}

payload! {
    /// `tool-workflow/agent-end`.
    pub struct WorkflowAgentEnd<'a> {
        /// Id of the run.
        run_id: JsonStr<'a> = "runId",
        /// Number of the agent in the run.
        seq: u64 = "seq",
        /// `completed`, `failed` or `cancelled`.
        outcome: JsonStr<'a> = "outcome",
    }
}
