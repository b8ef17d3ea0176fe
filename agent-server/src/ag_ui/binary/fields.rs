//! Table of the event members and their Protocol Buffers fields.

use super::{
    Arm, Field,
    Kind::{Any, Arms, Flag, Message, Messages, Object, Operation, Text, Texts, Whole},
};
use crate::ag_ui::binary::Kind;

/// Field of the members that all events share.
pub(super) const BASE: u32 = 1;

/// Operations of a JSON patch, by number.
pub(super) const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// Sub-agent of an event, in the field of this number.
const fn lane(number: u32) -> Field {
    Field(number, "/subagentRunId", Text)
}

/// Events by number, each with its field in the enclosing message.
pub(super) const EVENTS: &[Arm] = &[
    Arm(
        "TEXT_MESSAGE_START",
        1,
        &[Field(2, "/messageId", Text), Field(3, "/role", Text), Field(4, "/name", Text), lane(5)],
    ),
    Arm("TEXT_MESSAGE_CONTENT", 2, &[Field(2, "/messageId", Text), Field(3, "/delta", Text), lane(4)]),
    Arm("TEXT_MESSAGE_END", 3, &[Field(2, "/messageId", Text), lane(3)]),
    Arm(
        "TOOL_CALL_START",
        4,
        &[Field(2, "/toolCallId", Text), Field(3, "/toolCallName", Text), Field(4, "/parentMessageId", Text), lane(5)],
    ),
    Arm("TOOL_CALL_ARGS", 5, &[Field(2, "/toolCallId", Text), Field(3, "/delta", Text), lane(4)]),
    Arm("TOOL_CALL_END", 6, &[Field(2, "/toolCallId", Text), lane(3)]),
    Arm("STATE_SNAPSHOT", 7, &[Field(2, "/snapshot", Any), lane(3)]),
    Arm("STATE_DELTA", 8, &[Field(2, "/delta", Messages(PATCH)), lane(3)]),
    Arm("MESSAGES_SNAPSHOT", 9, &[Field(2, "/messages", Messages(SAID))]),
    Arm("RAW", 10, &[Field(2, "/event", Any), Field(3, "/source", Text), lane(4)]),
    Arm("CUSTOM", 11, &[Field(2, "/name", Text), Field(3, "/value", Any), lane(4)]),
    Arm(
        "RUN_STARTED",
        12,
        &[
            Field(2, "/threadId", Text),
            Field(3, "/runId", Text),
            Field(4, "/parentRunId", Text),
            Field(6, "/protocolVersion", Text),
        ],
    ),
    Arm(
        "RUN_FINISHED",
        13,
        &[
            Field(2, "/threadId", Text),
            Field(3, "/runId", Text),
            Field(4, "/result", Any),
            Field(5, "/outcome/type", Text),
            Field(6, "/outcome/interrupts", Messages(INTERRUPT)),
            Field(7, "/usage", Messages(USAGE)),
            Field(8, "/outcome/pendingToolCallIds", Texts),
        ],
    ),
    Arm("RUN_ERROR", 14, &[Field(2, "/code", Text), Field(3, "/message", Text), Field(4, "/usage", Messages(USAGE))]),
    Arm("STEP_STARTED", 15, &[Field(2, "/stepName", Text), lane(3)]),
    Arm("STEP_FINISHED", 16, &[Field(2, "/stepName", Text), lane(3)]),
    Arm(
        "SUBAGENT_STARTED",
        19,
        &[
            lane(2),
            Field(3, "/name", Text),
            Field(4, "/description", Text),
            Field(5, "/parentSubagentRunId", Text),
            Field(6, "/parentToolCallId", Text),
            Field(7, "/parentMessageId", Text),
        ],
    ),
    Arm(
        "SUBAGENT_FINISHED",
        20,
        &[lane(2), Field(3, "/result", Any), Field(4, "/outcome/type", Text), Field(5, "/outcome/interruptIds", Texts)],
    ),
    Arm("SUBAGENT_ERROR", 21, &[lane(2), Field(3, "/message", Text), Field(4, "/code", Text)]),
    Arm(
        "TEXT_MESSAGE_CHUNK",
        17,
        &[
            Field(2, "/messageId", Text),
            Field(3, "/role", Text),
            Field(4, "/delta", Text),
            Field(5, "/name", Text),
            lane(6),
        ],
    ),
    Arm(
        "TOOL_CALL_CHUNK",
        18,
        &[
            Field(2, "/toolCallId", Text),
            Field(3, "/toolCallName", Text),
            Field(4, "/parentMessageId", Text),
            Field(5, "/delta", Text),
            lane(6),
        ],
    ),
    Arm(
        "TOOL_CALL_RESULT",
        22,
        &[
            lane(2),
            Field(3, "/messageId", Text),
            Field(4, "/toolCallId", Text),
            Field(5, "/content", Text),
            Field(6, "/role", Text),
            Field(7, "/content", Arms(CONTENT)),
        ],
    ),
    Arm(
        "ACTIVITY_SNAPSHOT",
        23,
        &[
            lane(2),
            Field(3, "/messageId", Text),
            Field(4, "/activityType", Text),
            Field(5, "/content", Object),
            Field(6, "/replace", Flag),
        ],
    ),
    Arm(
        "ACTIVITY_DELTA",
        24,
        &[lane(2), Field(3, "/messageId", Text), Field(4, "/activityType", Text), Field(5, "/patch", Messages(PATCH))],
    ),
    Arm("REASONING_START", 25, &[lane(2), Field(3, "/messageId", Text)]),
    Arm("REASONING_MESSAGE_START", 26, &[lane(2), Field(3, "/messageId", Text), Field(4, "/role", Text)]),
    Arm("REASONING_MESSAGE_CONTENT", 27, &[lane(2), Field(3, "/messageId", Text), Field(4, "/delta", Text)]),
    Arm("REASONING_MESSAGE_END", 28, &[lane(2), Field(3, "/messageId", Text)]),
    Arm("REASONING_MESSAGE_CHUNK", 29, &[lane(2), Field(3, "/messageId", Text), Field(4, "/delta", Text)]),
    Arm("REASONING_END", 30, &[lane(2), Field(3, "/messageId", Text)]),
    Arm(
        "REASONING_ENCRYPTED_VALUE",
        31,
        &[lane(2), Field(3, "/subtype", Text), Field(4, "/entityId", Text), Field(5, "/encryptedValue", Text)],
    ),
];

const PATCH: &[Field] =
    &[Field(1, "/op", Operation), Field(2, "/path", Text), Field(3, "/from", Text), Field(4, "/value", Any)];

const INTERRUPT: &[Field] = &[
    Field(1, "/id", Text),
    Field(2, "/reason", Text),
    Field(3, "/message", Text),
    Field(4, "/toolCallId", Text),
    Field(5, "/responseSchema", Any),
    Field(6, "/expiresAt", Text),
    Field(7, "/metadata", Any),
    lane(8),
];

const USAGE: &[Field] = &[
    Field(1, "/provider", Text),
    Field(2, "/model", Text),
    Field(3, "/inputTokens", Whole),
    Field(4, "/outputTokens", Whole),
    Field(5, "/totalTokens", Whole),
    Field(6, "/reasoningTokens", Whole),
    Field(7, "/cachedInputTokens", Whole),
    Field(8, "/cacheWriteInputTokens", Whole),
];

/// Fields of a message of any role.
const SAID: &[Field] = &[
    Field(1, "/id", Text),
    Field(2, "/role", Text),
    Field(3, "/content", Text),
    Field(4, "/name", Text),
    Field(5, "/toolCalls", Messages(CALL)),
    Field(6, "/toolCallId", Text),
    Field(7, "/error", Text),
    Field(8, "/content", Arms(CONTENT)),
    Field(9, "/metadata", Object),
    lane(10),
    Field(11, "/encryptedValue", Text),
    Field(12, "/activityType", Text),
    Field(13, "/content", Object),
];

const CALL: &[Field] = &[
    Field(1, "/id", Text),
    Field(2, "/type", Text),
    Field(3, "/function", Message(&[Field(1, "/name", Text), Field(2, "/arguments", Text)])),
    Field(4, "/metadata", Object),
    Field(5, "/encryptedValue", Text),
];

const CONTENT: &[Arm] = &[
    Arm("text", 1, &[Field(1, "/text", Text), Field(2, "/id", Text), Field(3, "/metadata", Any)]),
    Arm("image", 2, MEDIA),
    Arm("audio", 3, MEDIA),
    Arm("video", 4, MEDIA),
    Arm("document", 5, MEDIA),
];

const MEDIA: &[Field] = &[Field(1, "/source", Kind::Arm(SOURCE)), Field(2, "/metadata", Any), Field(3, "/id", Text)];

const SOURCE: &[Arm] = &[
    Arm("data", 1, &[Field(1, "/value", Text), Field(2, "/mimeType", Text)]),
    Arm("url", 2, &[Field(1, "/value", Text), Field(2, "/mimeType", Text)]),
    Arm("file", 3, &[Field(1, "/value", Text), Field(2, "/provider", Text), Field(3, "/mimeType", Text)]),
];
