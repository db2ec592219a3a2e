/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of format 1, one of each kind with everything that it can have, as users' stores contain
 * them: a later version must read them with the same meaning.  Never change a line; a new format
 * gets a new file.
 *
 * The includer defines EVENT, MESSAGE and TASK: the members of the struct, the payload. */

EVENT(.kind = EVENT_STARTED, .time = 1700000000000, .name = T("order"), .version = T("1.2.3"),
      .text = T("{\"id\":7}"),
      .parent = {.instance = T("p-1"), .execution = 2, .source = 9},
      .carried = (struct carried[]){{T("mail"), T("one")}, {T("mail"), T("")}}, .n_carried = 2)
PAYLOAD("{\"v\":1,\"kind\":\"started\",\"time\":1700000000000,\"name\":\"order\","
        "\"version\":\"1.2.3\",\"input\":\"{\\\"id\\\":7}\",\"parent\":{\"instance\":\"p-1\","
        "\"execution\":2,\"source\":9},\"carried\":[{\"queue\":\"mail\",\"data\":\"one\"},"
        "{\"queue\":\"mail\",\"data\":\"\"}]}")
EVENT(.kind = EVENT_STARTED, .name = T("order"))
PAYLOAD("{\"v\":1,\"kind\":\"started\",\"name\":\"order\"}")
EVENT(.kind = EVENT_COMPLETED, .time = 5, .text = T("line\n\ttab \"quoted\" \\ \xc3\xa9 \x01"))
PAYLOAD("{\"v\":1,\"kind\":\"completed\",\"time\":5,"
        "\"output\":\"line\\n\\ttab \\\"quoted\\\" \\\\ \xc3\xa9 \\u0001\"}")
EVENT(.kind = EVENT_COMPLETED, .time = 5, .text = T("a\0b"))
PAYLOAD("{\"v\":1,\"kind\":\"completed\",\"time\":5,\"output\":\"a\\u0000b\"}")
EVENT(.kind = EVENT_COMPLETED, .text = T("\xff\xfe\0\x80"))
PAYLOAD("{\"v\":1,\"kind\":\"completed\",\"output.base64\":\"//4AgA==\"}")
EVENT(.kind = EVENT_COMPLETED)
PAYLOAD("{\"v\":1,\"kind\":\"completed\"}")
EVENT(.kind = EVENT_FAILED, .text = T("no money"), .code = CODE_APPLICATION)
PAYLOAD("{\"v\":1,\"kind\":\"failed\",\"error\":\"no money\",\"code\":\"application\"}")
EVENT(.kind = EVENT_CANCELLED, .text = T("too late"), .by = T("me"))
PAYLOAD("{\"v\":1,\"kind\":\"cancelled\",\"reason\":\"too late\",\"by\":\"me\"}")
EVENT(.kind = EVENT_CONTINUED, .text = T("next"), .version = T("2.0.0"))
PAYLOAD("{\"v\":1,\"kind\":\"continued\",\"input\":\"next\",\"version\":\"2.0.0\"}")
EVENT(.kind = EVENT_CANCEL_REQUESTED, .text = T("too late"), .by = T("me"))
PAYLOAD("{\"v\":1,\"kind\":\"cancel_requested\",\"reason\":\"too late\",\"by\":\"me\"}")
EVENT(.kind = EVENT_ACTIVITY, .name = T("charge"), .text = T("7"), .tag = T("gpu"),
      .session = T("s-1"))
PAYLOAD("{\"v\":1,\"kind\":\"activity\",\"name\":\"charge\",\"input\":\"7\",\"tag\":\"gpu\","
        "\"session\":\"s-1\"}")
EVENT(.kind = EVENT_ACTIVITY_COMPLETED, .source = 3, .text = T("done"))
PAYLOAD("{\"v\":1,\"kind\":\"activity_completed\",\"source\":3,\"result\":\"done\"}")
EVENT(.kind = EVENT_ACTIVITY_FAILED, .source = 3, .text = T("no"), .code = CODE_POISON)
PAYLOAD("{\"v\":1,\"kind\":\"activity_failed\",\"source\":3,\"error\":\"no\","
        "\"code\":\"poison\"}")
EVENT(.kind = EVENT_TIMER, .number = 30000, .time2 = 1700000030000)
PAYLOAD("{\"v\":1,\"kind\":\"timer\",\"duration\":30000,\"fire_at\":1700000030000}")
EVENT(.kind = EVENT_TIMER_FIRED, .source = UINT64_MAX)
PAYLOAD("{\"v\":1,\"kind\":\"timer_fired\",\"source\":18446744073709551615}")
EVENT(.kind = EVENT_CHILD, .name = T("part"), .text = T("in"), .instance = T("p-1::1.4"),
      .version = T("1.0.0"))
PAYLOAD("{\"v\":1,\"kind\":\"child\",\"name\":\"part\",\"input\":\"in\","
        "\"instance\":\"p-1::1.4\",\"version\":\"1.0.0\"}")
EVENT(.kind = EVENT_CHILD_COMPLETED, .source = 4, .text = T("out"))
PAYLOAD("{\"v\":1,\"kind\":\"child_completed\",\"source\":4,\"result\":\"out\"}")
EVENT(.kind = EVENT_CHILD_FAILED, .source = 4, .text = T("taken"), .code = CODE_INSTANCE_TAKEN)
PAYLOAD("{\"v\":1,\"kind\":\"child_failed\",\"source\":4,\"error\":\"taken\","
        "\"code\":\"instance_taken\"}")
EVENT(.kind = EVENT_DETACHED, .name = T("part"), .text = T("in"), .instance = T("d-1"),
      .version = T("1.0.0"))
PAYLOAD("{\"v\":1,\"kind\":\"detached\",\"name\":\"part\",\"input\":\"in\","
        "\"instance\":\"d-1\",\"version\":\"1.0.0\"}")
EVENT(.kind = EVENT_WAIT, .name = T("paid"))
PAYLOAD("{\"v\":1,\"kind\":\"wait\",\"name\":\"paid\"}")
EVENT(.kind = EVENT_RAISED, .name = T("paid"), .text = T("42"), .message_id = T("r01"))
PAYLOAD("{\"v\":1,\"kind\":\"raised\",\"name\":\"paid\",\"data\":\"42\",\"message_id\":\"r01\"}")
EVENT(.kind = EVENT_DEQUEUE, .name = T("mail"))
PAYLOAD("{\"v\":1,\"kind\":\"dequeue\",\"queue\":\"mail\"}")
EVENT(.kind = EVENT_QUEUED, .name = T("mail"), .text = T("hello"), .message_id = T("q01"))
PAYLOAD("{\"v\":1,\"kind\":\"queued\",\"queue\":\"mail\",\"data\":\"hello\","
        "\"message_id\":\"q01\"}")
EVENT(.kind = EVENT_TRY_DEQUEUE, .name = T("mail"), .number = 1, .source = 6)
PAYLOAD("{\"v\":1,\"kind\":\"try_dequeue\",\"queue\":\"mail\",\"took\":1,\"source\":6}")
EVENT(.kind = EVENT_DROPPED, .source = 3, .code = CODE_SELECT_LOSER_TIMEOUT)
PAYLOAD("{\"v\":1,\"kind\":\"dropped\",\"source\":3,\"code\":\"select_loser_timeout\"}")
EVENT(.kind = EVENT_ENDED, .source = 3, .code = CODE_TERMINAL_CONTINUED_AS_NEW)
PAYLOAD("{\"v\":1,\"kind\":\"ended\",\"source\":3,\"code\":\"terminal_continued_as_new\"}")
EVENT(.kind = EVENT_VALUE, .name = T("random"), .number = INT64_MIN)
PAYLOAD("{\"v\":1,\"kind\":\"value\",\"name\":\"random\",\"number\":-9223372036854775808}")
EVENT(.kind = EVENT_VALUE, .name = T("guid"), .text = T("00000000-0000-4000-8000-000000000000"))
PAYLOAD("{\"v\":1,\"kind\":\"value\",\"name\":\"guid\","
        "\"text\":\"00000000-0000-4000-8000-000000000000\"}")
EVENT(.kind = EVENT_KV, .number = DK_KV_SET, .name = T("colour"), .text = T("red"))
PAYLOAD("{\"v\":1,\"kind\":\"kv\",\"op\":1,\"key\":\"colour\",\"value\":\"red\"}")
EVENT(.kind = EVENT_STATUS, .text = T("half"))
PAYLOAD("{\"v\":1,\"kind\":\"status\",\"status\":\"half\"}")

MESSAGE(.kind = MESSAGE_START, .name = T("order"), .version = T("1.2.3"), .text = T("in"),
        .parent = {.instance = T("p-1"), .execution = 2, .source = 9})
PAYLOAD("{\"v\":1,\"kind\":\"start\",\"name\":\"order\",\"version\":\"1.2.3\",\"input\":\"in\","
        "\"parent\":{\"instance\":\"p-1\",\"execution\":2,\"source\":9}}")
MESSAGE(.kind = MESSAGE_CONTINUE, .execution = 3, .name = T("order"), .version = T("1.2.3"),
        .text = T("in"), .parent = {.instance = T("p-1"), .execution = 2, .source = 9},
        .carried = (struct carried[]){{T("mail"), T("\xff")}}, .n_carried = 1)
PAYLOAD("{\"v\":1,\"kind\":\"continue\",\"execution\":3,\"name\":\"order\","
        "\"version\":\"1.2.3\",\"input\":\"in\",\"parent\":{\"instance\":\"p-1\","
        "\"execution\":2,\"source\":9},\"carried\":[{\"queue\":\"mail\","
        "\"data.base64\":\"/w==\"}]}")
MESSAGE(.kind = MESSAGE_ACTIVITY_COMPLETED, .execution = 1, .source = 3, .text = T("done"))
PAYLOAD("{\"v\":1,\"kind\":\"activity_completed\",\"execution\":1,\"source\":3,"
        "\"result\":\"done\"}")
MESSAGE(.kind = MESSAGE_ACTIVITY_FAILED, .execution = 1, .source = 3, .text = T("no"),
        .code = CODE_UNREGISTERED)
PAYLOAD("{\"v\":1,\"kind\":\"activity_failed\",\"execution\":1,\"source\":3,\"error\":\"no\","
        "\"code\":\"unregistered\"}")
MESSAGE(.kind = MESSAGE_TIMER_FIRED, .execution = 1, .source = 3)
PAYLOAD("{\"v\":1,\"kind\":\"timer_fired\",\"execution\":1,\"source\":3}")
MESSAGE(.kind = MESSAGE_CHILD_COMPLETED, .execution = 1, .source = 4, .text = T("out"))
PAYLOAD("{\"v\":1,\"kind\":\"child_completed\",\"execution\":1,\"source\":4,"
        "\"result\":\"out\"}")
MESSAGE(.kind = MESSAGE_CHILD_FAILED, .execution = 1, .source = 4, .text = T("no"),
        .code = CODE_CANCELLED)
PAYLOAD("{\"v\":1,\"kind\":\"child_failed\",\"execution\":1,\"source\":4,\"error\":\"no\","
        "\"code\":\"cancelled\"}")
MESSAGE(.kind = MESSAGE_RAISED, .name = T("paid"), .text = T("42"))
PAYLOAD("{\"v\":1,\"kind\":\"raised\",\"name\":\"paid\",\"data\":\"42\"}")
MESSAGE(.kind = MESSAGE_QUEUED, .name = T("mail"), .text = T("hello"))
PAYLOAD("{\"v\":1,\"kind\":\"queued\",\"queue\":\"mail\",\"data\":\"hello\"}")
MESSAGE(.kind = MESSAGE_CANCEL, .text = T("too late"), .by = T("me"),
        .parent = {.instance = T("p-1"), .execution = 2, .source = 9})
PAYLOAD("{\"v\":1,\"kind\":\"cancel\",\"reason\":\"too late\",\"by\":\"me\","
        "\"parent\":{\"instance\":\"p-1\",\"execution\":2,\"source\":9}}")
MESSAGE(.kind = MESSAGE_DELAYED, .name = T("unregistered"), .text = T("no order"), .by = T("w1"))
PAYLOAD("{\"v\":1,\"kind\":\"delayed\",\"why\":\"unregistered\",\"text\":\"no order\","
        "\"by\":\"w1\"}")

TASK(.name = T("charge"), .input = T("7"), .orchestration = T("order"), .version = T("1.2.3"))
PAYLOAD("{\"v\":1,\"kind\":\"task\",\"name\":\"charge\",\"input\":\"7\","
        "\"orchestration\":\"order\",\"version\":\"1.2.3\"}")
