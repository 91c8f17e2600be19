"""Demands on the page, and the tests that show them: those of the five papers that this product was made from, and the features of well-known
pages. After the tables are tests of features that no other file covers."""
import json
import os
import subprocess
import sys

import pytest
from support.browser import By, Keys, webdriver
from support.demands import Left, at, wanting
from support.provider import CUT, Gate, Reply, call, delta, text, tools
from support.server import BINARY
from support.terminal import Terminal
from support.timing import SLACK, SOON, eventually
from test_confirmation import REMOVING

pytestmark = pytest.mark.limit(90)
HERE = "test_page_demands.py"


def page(*names):
    return at("test_page.py", *names)


def cards(*names):
    return at("test_page_cards.py", *names)


def audio(*names):
    return at("test_page_audio.py", *names)


def here(*names):
    return at(HERE, *names)


# Paper and lines, the demand, and its tests.
DEMANDS = [
    ("2: 14-18, 84-89", "a chat page that reads the event stream", page("test_a_message_makes_a_chat_and_its_answer_streams")),
    ("2: 14-18, 84-89", "cards for questions and approvals that answer by POST", page("test_an_approval_is_shown_as_a_diff_and_approved", "test_questions_as_text_and_options")),
    ("2: 14-18, 84-89", "a board of tasks", page("test_tasks_are_moved_and_added") + here("test_tasks_are_dragged_renamed_and_removed") + cards("test_the_board_is_worked_by_keys")),
    ("2: 14-18, 84-89", "upload of files", here("test_files_are_picked_dropped_and_pasted")),
    ("2: 24-28, 564", "respond and cancel", page("test_questions_as_text_and_options", "test_stop") + here("test_a_question_is_declined")),
    ("2: 24-28, 564", "tasks read and changed", page("test_tasks_are_moved_and_added")),
    ("2: 24-28, 564", "threads", page("test_rename_delete_and_undo")),
    ("2: 24-28, 564", "files listed, downloaded and deleted", here("test_the_files_of_a_chat_are_listed_opened_and_deleted")),
    ("2: 156-166", "text and thinking as they come", page("test_a_message_makes_a_chat_and_its_answer_streams", "test_thinking_is_folded_and_timed")),
    ("2: 156-166", "calls and their results", page("test_tool_cards_by_kind_can_be_opened_and_hidden")),
    ("2: 156-166", "requests for approval and input", page("test_an_approval_is_shown_as_a_diff_and_approved", "test_questions_as_text_and_options")),
    ("2: 156-166", "completion and errors", page("test_a_message_makes_a_chat_and_its_answer_streams", "test_an_error_says_what_to_do_next")),
    ("2: 156-166", "tasks as they change", here("test_tasks_and_plan_stand_in_the_chat_and_on_the_board")),
    ("2: 223-226, 282-287", "the card is drawn from the event and answered by the id of the request", here("test_approving_one_call_decides_that_one_alone")),
    ("2: 223-226, 282-287", "who approves may change the arguments", page("test_arguments_are_changed_in_a_form_and_words_reach_the_model")),
    ("2: 223-226, 282-287", "a denial shows as a result", here("test_a_denial_shows_as_the_calls_result")),
    ("2: 234-243", "an approval outlives the browser", here("test_an_approval_outlives_the_window")),
    ("2: 374, 402, 554, 573", "transcription and speech",
     audio("test_what_is_said_goes_where_the_cursor_is", "test_an_answer_is_read_aloud_and_stopped")),
    ("2: 374, 402, 554, 573", "realtime audio", 
     Left("a conversation by voice is another product: no peer's page has it without a service of its own, and approvals have no place in it")),
    ("2: 374, 402, 554, 573", "a chat that is busy", page("test_messages_wait_in_a_queue") + here("test_a_message_to_a_chat_that_works_for_another_waits")),
    ("2: 374, 402, 554, 573", "cancelled turns", page("test_stop")),
    ("2: 374, 402, 554, 573", "PDF and pictures at least by name", here("test_files_are_picked_dropped_and_pasted")),
    ("3: 12-19, 65-68", "page and command line over one core", here("test_the_terminal_and_the_page_share_a_conversation")),
    ("3: 12-19, 65-68", "the display never waits for the agent", here("test_everything_can_be_used_while_the_agent_works")),
    ("3: 12-19, 65-68", "several subscribers of one session", page("test_two_windows_show_the_same")),
    ("3: 59-62", "interrupt, undo, compact", page("test_stop", "test_edit_with_a_preview_then_branches_undo_and_redo") + here("test_older_messages_are_summed_up_on_request")),
    ("3: 59-62", "ready, processing, interrupted", page("test_a_message_makes_a_chat_and_its_answer_streams", "test_stop")),
    ("3: 59-62", "tool_state_change, tool_log", here("test_the_output_of_a_command_is_shown_as_it_comes")),
    ("3: 59-62", "plan_update, compacted", here("test_tasks_and_plan_stand_in_the_chat_and_on_the_board", "test_older_messages_are_summed_up_on_request")),
    ("3: 108-117", "state of each session, reconnection", page("test_a_hundred_chats_of_which_twenty_stream_at_once", "test_the_page_goes_on_by_itself_after_kill_9")),
    ("3: 108-117", "list of sessions; the open one is remembered", page("test_rename_delete_and_undo") + here("test_the_open_chat_is_remembered")),
    ("3: 108-117", "research agents", cards("test_an_agent_of_its_own_shows_its_steps_while_it_takes_them")),
    ("3: 108-117", "panels, plans, sidebar, theme", page("test_trace_and_settings") + here("test_tasks_and_plan_stand_in_the_chat_and_on_the_board") +
     at("test_page_everywhere.py", "test_dark_and_light_follow_the_system_or_the_choice")),
    ("3: 118-121", "messages survive a reload", here("test_a_reload_in_mid_answer_loses_nothing")),
    ("3: 118-121", "the state of sub-agents survives a reload", cards("test_an_agent_of_its_own_shows_its_steps_while_it_takes_them")),
    ("3: 266-276", "approve, reject, feedback",
     page("test_an_approval_is_shown_as_a_diff_and_approved", "test_a_denial_and_a_scope", "test_arguments_are_changed_in_a_form_and_words_reach_the_model")),
    ("3: 266-276", "yolo: no more questions", here("test_a_lasting_yes_is_listed_and_taken_back")),
    ("3: 266-276", "yolo: the mode of the chat", at("test_page_settings.py", "test_the_mode_of_a_chat_is_chosen_and_told_to_other_windows")),
    ("3: 282-302", "all sessions go on at once; only the open one is drawn", page("test_a_hundred_chats_of_which_twenty_stream_at_once")),
    ("4: 35", "input area and choice of the model", page("test_a_message_makes_a_chat_and_its_answer_streams") + here("test_the_model_is_picked")),
    ("4: 35", "choice of tools",
     Left("which tools the agent has is the server's configuration, for everybody who asks; a person decides at each call, or by the chat's approval mode")),
    ("4: 35", "list of threads", here("test_chats_are_listed_by_age_with_the_newest_first")),
    ("4: 35", "dictation", audio("test_what_is_said_goes_where_the_cursor_is")),
    ("4: 36", "a turn is a group", here("test_the_question_stays_in_sight_and_is_edited_there")),
    ("4: 36", "a sticky question that is edited there and sent again", here("test_the_question_stays_in_sight_and_is_edited_there")),
    ("4: 36", "approve all, reject all", page("test_one_by_one_or_all") + here("test_all_are_denied_at_once")),
    ("4: 37-39", "GFM, diff blocks", page("test_markdown_code_math_and_diffs")),
    ("4: 37-39", "link schemes", at("test_page_trust.py", "test_links_of_a_model_lead_out_alone")),
    ("4: 37-39", "thinking folded, with a timer that runs", page("test_thinking_is_folded_and_timed") + cards("test_the_timer_of_thinking_runs")),
    ("4: 37-39", "rounds that were carried out", here("test_rounds_and_steps_are_in_the_trace")),
    ("4: 37-39", "call cards: approve, reject, always; arguments to be opened", page("test_a_denial_and_a_scope", "test_tool_cards_by_kind_can_be_opened_and_hidden") +
     here("test_a_lasting_yes_is_listed_and_taken_back")),
    ("4: 40, 42, 22", "history by age", here("test_chats_are_listed_by_age_with_the_newest_first")),
    ("4: 40, 42, 22", "dictation", audio("test_what_is_said_goes_where_the_cursor_is")),
    ("4: 40, 42, 22", "mentions", here("test_a_file_is_mentioned_by_its_name", "test_a_file_of_the_workspace_is_chosen_behind_an_at_sign")),
    ("4: 41", "what the agent keeps in mind", here("test_tasks_and_plan_stand_in_the_chat_and_on_the_board")),
    ("4: 157-165, 171", "deltas agree with the finished text", at("test_page_list.py", "test_an_answer_of_a_megabyte") + here("test_a_reload_in_mid_answer_loses_nothing")),
    ("4: 157-165, 171", "an error takes the place of what was to come", page("test_an_error_says_what_to_do_next") + here("test_an_error_in_mid_answer_keeps_what_was_said")),
    ("4: 157-165, 171", "approvals may follow on approvals", here("test_an_approval_may_follow_on_another")),
    ("4: 175-178", "a chat is made by its first message, with a title", here("test_a_chat_is_made_and_named_by_its_first_message")),
    ("4: 175-178", "sent again from a turn", page("test_edit_with_a_preview_then_branches_undo_and_redo")),
    ("4: 175-178", "the list is fresh after a turn", here("test_chats_are_listed_by_age_with_the_newest_first")),
    ("4: 218-220, 227, 250", "cancel takes back a message that has no answer", here("test_a_stopped_question_is_taken_back_and_asked_again")),
    ("4: 218-220, 227, 250", "a reload loses no partial text", here("test_a_reload_in_mid_answer_loses_nothing")),
    ("4: 218-220, 227, 250", "silence is kept alive", at("test_stream.py", "test_a_silent_stream_is_kept_alive_by_comments")),
    ("4: 266-270", "approving one call decides no other", here("test_approving_one_call_decides_that_one_alone")),
    ("5: 35-43", "chat, input, debug pane, metrics", page("test_a_message_makes_a_chat_and_its_answer_streams", "test_trace_and_settings")),
    ("5: 203-207, 235-238", "results and confirmations in the trace", here("test_rounds_and_steps_are_in_the_trace", "test_a_confirmation_happens_in_the_conversation")),
    ("5: 203-207, 235-238", "the new session's id", here("test_a_chat_is_made_and_named_by_its_first_message")),
    ("5: 601-629", "confirmation in the conversation, without a modal window", here("test_a_confirmation_happens_in_the_conversation")),
    ("5: 723, 733, 856, 896", "steps and the end are told", here("test_rounds_and_steps_are_in_the_trace")),
    ("5: 723, 733, 856, 896", "Enter sends", at("test_page_everywhere.py", "test_every_key_of_the_help_does_what_it_says")),
    ("5: 723, 733, 856, 896", "the final message is drawn whole", at("test_page_list.py", "test_an_answer_of_a_megabyte")),
]

# Features of other pages.
FEATURES = [
    ("streaming GFM markdown, code highlight, copy", page("test_a_message_makes_a_chat_and_its_answer_streams", "test_markdown_code_math_and_diffs")),
    ("math", page("test_markdown_code_math_and_diffs")),
    ("mermaid", Left("megabytes of script that wants inline styles, which the policy refuses; no paper asks for it. The source is shown as code")),
    ("diffs of file edits", page("test_an_approval_is_shown_as_a_diff_and_approved") + cards("test_an_edit_is_a_diff_with_numbers_and_counts")),
    ("tool cards, collapsible, hide all", page("test_tool_cards_by_kind_can_be_opened_and_hidden") + cards("test_all_cards_are_opened_closed_and_hidden",
     "test_a_file_is_shown_with_numbers_and_colours", "test_a_command_has_its_output_its_end_and_its_time", "test_what_was_found_stands_file_by_file")),
    ("sources of an answer, and web searches, as links", cards("test_a_web_search_is_a_list_of_links")),
    ("approval card in the chat", page("test_an_approval_is_shown_as_a_diff_and_approved")),
    ("edit arguments while approving", page("test_arguments_are_changed_in_a_form_and_words_reach_the_model") +
     cards("test_arguments_of_every_kind_have_fields_and_are_checked")),
    ("scopes once, chat, always; feedback", page("test_a_denial_and_a_scope", "test_arguments_are_changed_in_a_form_and_words_reach_the_model") +
     here("test_a_lasting_yes_is_listed_and_taken_back")),
    ("human input as a form from JSON Schema", here("test_a_question_is_a_form", "test_a_question_is_an_address")),
    ("one inbox of everything that waits", page("test_the_inbox_has_what_waits_in_every_chat_and_agrees_with_curl")),
    ("plan and tasks board", page("test_tasks_are_moved_and_added") + here("test_tasks_are_dragged_renamed_and_removed", "test_tasks_and_plan_stand_in_the_chat_and_on_the_board")),
    ("branches, edit, regenerate", page("test_edit_with_a_preview_then_branches_undo_and_redo", "test_regenerate_and_fork")),
    ("edit preview, undo, redo", page("test_edit_with_a_preview_then_branches_undo_and_redo") + here("test_an_edit_names_the_effects_that_stay")),
    ("fork into a new chat", page("test_regenerate_and_fork")),
    ("history by age, rename, delete, search", page("test_rename_delete_and_undo", "test_what_was_said_is_found") + here("test_chats_are_listed_by_age_with_the_newest_first")),
    ("upload: drag, drop, paste a picture", here("test_files_are_picked_dropped_and_pasted")),
    ("dictation, speech, recording", audio("test_what_is_said_goes_where_the_cursor_is", "test_escape_drops_a_recording", "test_an_answer_is_read_aloud_and_stopped")),
    ("thinking with a timer", page("test_thinking_is_folded_and_timed") + cards("test_the_timer_of_thinking_runs")),
    ("trace", page("test_trace_and_settings") + here("test_rounds_and_steps_are_in_the_trace")),
    ("requests to models", at("test_page_requests.py", "test_a_turns_requests_and_what_came_of_them", "test_the_body_is_copied_and_saved_byte_for_byte",
                              "test_turns_without_requests_say_why", "test_a_deleted_attachment_is_named", "test_ten_megabytes_do_not_freeze_the_page",
                              "test_small_dark_and_by_keyboard")),
    ("tokens and context", here("test_usage_and_context_are_told") + cards("test_the_meter_is_a_bar")),
    ("cost", at("test_page_settings.py", "test_a_turn_and_a_chat_have_their_cost")),
    ("many sessions live", page("test_a_hundred_chats_of_which_twenty_stream_at_once")),
    ("queue: see, edit, remove", page("test_messages_wait_in_a_queue") + here("test_waiting_messages_are_changed_and_removed")),
    ("shortcuts, command palette", page("test_keys") + at("test_page_everywhere.py", "test_every_key_of_the_help_does_what_it_says")),
    ("mobile", page("test_small_windows") + at("test_page_everywhere.py", "test_every_view_fits")),
    ("dark mode", at("test_page_everywhere.py", "test_dark_and_light_follow_the_system_or_the_choice")),
    ("notifications: finished, approval, question", page("test_notifications_only_when_hidden_and_without_content") + here("test_title_and_icon_tell_what_goes_on")),
    ("reconnect without loss", page("test_the_page_goes_on_by_itself_after_kill_9")),
    ("export", page("test_a_chat_is_exported_and_imported")),
    ("share", Left("a server on loopback has nobody to show a link to: a chat is exported, and imported elsewhere")),
    ("replay scrubber", page("test_the_replay_scrubber_and_its_check") + here("test_where_a_replay_differs_is_shown")),
    ("accessibility tested", page("test_axe_finds_nothing_serious_on_any_view") + at("test_page_everywhere.py", "test_every_view_is_walked_by_keyboard_alone",
     "test_everything_has_a_name_and_a_role", "test_what_a_screen_reader_says")),
]
# What users of other pages ask for, in threads open for a year.
WISHES = [
    ("notify when blocked: three kinds, opt-in, only when hidden, without content", page("test_notifications_only_when_hidden_and_without_content")),
    ("one place for what waits on me; status in a sidebar",
     page("test_the_inbox_has_what_waits_in_every_chat_and_agrees_with_curl", "test_a_message_makes_a_chat_and_its_answer_streams")),
    ("delete many chats at once", cards("test_chats_are_picked_deleted_and_brought_back")),
    ("prune branches; a map of them; none vanishes", page("test_edit_with_a_preview_then_branches_undo_and_redo")),
    ("approve with changed arguments; allow for this session", page("test_arguments_are_changed_in_a_form_and_words_reach_the_model", "test_a_denial_and_a_scope")),
    ("switch the approval mode in mid-run", at("test_page_settings.py", "test_a_mode_changed_while_the_agent_works_holds_from_its_next_call")),
    ("see what a lasting grant covers", here("test_a_lasting_yes_is_listed_and_taken_back")),
    ("no token-by-token live region", at("test_page_everywhere.py", "test_what_a_screen_reader_says")),
    ("name a file of the workspace in a message", here("test_a_file_of_the_workspace_is_chosen_behind_an_at_sign", "test_files_that_a_message_names_go_along_whoever_wrote_the_name",
     "test_a_secret_is_neither_offered_nor_named", "test_a_file_that_is_named_here_or_at_the_terminal_is_the_same")),
    ("say for how long a lasting grant counts, and read what it covers before it is given",
     page("test_a_pattern_is_chosen_in_the_card_and_listed_with_its_sentence", "test_how_long_a_pattern_counts_is_chosen_by_keys_alone")),
    ("a large paste becomes an attachment", page("test_a_draft_is_kept_and_a_long_paste_becomes_a_file")),
]

# What "it must show", in addition.
PROOFS = [
    ("kill -9 in mid-answer", page("test_the_page_goes_on_by_itself_after_kill_9")),
    ("an approval answered in curl disappears, and the other way round", page("test_the_inbox_has_what_waits_in_every_chat_and_agrees_with_curl")),
    ("two tabs show the same", page("test_two_windows_show_the_same")),
    ("the server sends each event once", at("test_page_list.py", "test_each_event_is_sent_once_however_often_the_chat_is_changed", "test_nothing_is_lost_when_the_connection_breaks")),
    ("100 chats of which 20 stream", page("test_a_hundred_chats_of_which_twenty_stream_at_once")),
    ("10,000 events, an answer of 1 MB", at("test_page_list.py", "test_ten_thousand_events_in_one_turn", "test_an_answer_of_a_megabyte", "test_six_hundred_turns_are_read_as_they_are_reached")),
    ("memory bounded: a list that draws what is seen", at("test_page_list.py", "test_memory_stays_bounded_when_a_hundred_chats_are_looked_at", "test_what_is_above_is_let_go_and_read_again",
     "test_a_thousand_chats_in_the_sidebar")),
    ("no request to another host; an empty report of the policy",
     at("test_page_trust.py", "test_a_request_to_another_host_fails_any_test", "test_what_the_policy_refuses_fails_any_test") +
     at("test_page_made.py", "test_no_part_of_it_names_another_host_to_fetch_from")),
    ("what a model says does nothing", page("test_what_a_model_says_does_nothing", "test_what_cannot_be_seen_is_spelled_out")),
    ("a foreign origin, frame or rebinding host", at("test_page_trust.py", "test_a_stranger_can_neither_read_nor_drive_it")),
    ("axe-core", page("test_axe_finds_nothing_serious_on_any_view")),
    ("first paint", at("test_page_made.py", "test_the_first_paint")),
    ("bundle sizes are printed; packages of the distribution, no network", at("test_page_made.py", "test_the_build_says_how_large_the_page_is",
     "test_the_build_needs_nothing_but_packages_of_the_distribution", "test_the_same_sources_give_the_same_bytes")),
    ("keyboard alone", at("test_page_everywhere.py", "test_every_view_is_walked_by_keyboard_alone", "test_the_focus_is_never_lost", "test_escape_closes_what_is_open")),
    ("200 % zoom, phone", at("test_page_everywhere.py", "test_every_view_fits", "test_the_window_may_shrink_and_grow")),
    ("reduced motion", at("test_page_everywhere.py", "test_without_motion_where_that_is_wished")),
    ("English texts in files of their own", at("test_page_made.py", "test_all_words_for_people_are_in_the_files_of_texts")),
    ("pictures of the main views in docs", page("test_pictures", "test_every_picture_of_the_docs_is_there")),
]
ROWS = [(f"{lines} {demand}", shown) for lines, demand, shown in DEMANDS] + FEATURES + WISHES + PROOFS


def test_every_demand_has_a_test():
    assert wanting(ROWS) == []
    papers = {lines.split(":")[0] for lines, _, _ in DEMANDS}
    assert papers == {"2", "3", "4", "5"}, "the first paper does not ask for a page"
    # The check itself finds faults.
    assert wanting([("a", []), ("b", here("test_of_nothing")), ("c", Left("no")), ("d", [])]) == [
        "a: nothing shows it", f"b: there is no {HERE}::test_of_nothing", "c: left out without a reason", "d: nothing shows it"]


def chat_of(server):
    return server.client.get("/chats").json["chats"][0]["id"]


def idle(window, answers):
    """Waits until that many turns have ended."""
    window.until(lambda: len(window.all("turn")) == answers and window.one("turns").get_attribute("aria-busy") == "false", f"the end of turn {answers}")


# --- files -------------------------------------------------------------------------------------------------------------

PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


def drop(window, *files):
    """Drags files from outside onto the composer and drops them."""
    box = window.one("composer").rect
    data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        window.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, "x": box["x"] + 20, "y": box["y"] + 10, "data": data})


def test_files_are_picked_dropped_and_pasted(server, provider, browse, tmp_path):
    for name, content in (("notes.txt", b"the words of the notes"), ("paper.pdf", PDF), ("unwanted.txt", b"x")):
        (tmp_path / name).write_bytes(content)
    window = browse(server)
    window.one("composer")
    drop(window, tmp_path / "notes.txt")  # before a chat exists
    window.until_text("attachments", "notes.txt")
    window.all("file")[0].send_keys(f"{tmp_path / 'paper.pdf'}\n{tmp_path / 'unwanted.txt'}")
    window.until(lambda: all(name in window.text("attachments") for name in ("paper.pdf", "unwanted.txt")), "two more")
    window.one("attachments").find_element(By.CSS_SELECTOR, "button[aria-label='Remove unwanted.txt']").click()
    window.until(lambda: "unwanted" not in window.text("attachments"), "the end of one")
    # A picture from the clipboard.
    window.driver.execute_cdp_cmd("Browser.grantPermissions", {"origin": window.origin, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    window.driver.set_script_timeout(20)
    window.driver.execute_async_script("""const done = arguments[0]; const canvas = document.createElement('canvas'); canvas.width = canvas.height = 4;
        canvas.toBlob((blob) => navigator.clipboard.write([new ClipboardItem({'image/png': blob})]).then(done, (e) => done(String(e))));""")
    window.one("composer").click()
    window.keys(Keys.CONTROL, "v")
    window.until(lambda: ".png" in window.text("attachments"), "the picture")
    provider.plan(text("read"))
    window.say("look at these")
    window.until_text("answer", "read")
    assert not window.all("attachments") or "notes.txt" not in window.css("form [data-testid=attachments]")
    shown = window.one("turn").text
    assert "notes.txt" in shown and "paper.pdf" in shown and ".png" in shown
    assert "the words of the notes" in json.dumps(provider.requests[-1].body)
    named = [each["filename"] for each in server.client.interaction(chat_of(server), "int_001")["attachments"]]
    assert named[:2] == ["notes.txt", "paper.pdf"] and len(named) == 3


def test_the_files_of_a_chat_are_listed_opened_and_deleted(server, provider, browse, tmp_path):
    (tmp_path / "notes.txt").write_text("the words of the notes")
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    window = browse(server, "/#c")
    window.until_text("answer", "ok")
    window.all("file")[0].send_keys(str(tmp_path / "notes.txt"))
    window.until_text("attachments", "notes.txt")
    window.press("tab-board")
    row = window.until(lambda: next((each for each in window.all("chat-file") if "notes.txt" in each.text), None), "the file")
    window.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path / "down")})
    row.find_element(By.CSS_SELECTOR, "a").click()
    eventually(lambda: (tmp_path / "down" / "notes.txt").exists(), "the download", 10 * SLACK)
    assert (tmp_path / "down" / "notes.txt").read_text() == "the words of the notes"
    row.find_element(By.CSS_SELECTOR, "button").click()
    window.press("remove-file-sure")
    window.gone("chat-file")
    assert server.client.get("/chats/c/files").json["files"] == []


# --- people in the loop ------------------------------------------------------------------------------------------------

def test_an_approval_outlives_the_window(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo yes > out.txt"})), text("ran"))
    first = browse(server)
    first.say("run")
    first.one("approval-card")
    first.driver.get("about:blank")
    second = browse(server)
    second.press("tab-inbox")
    second.one("approval-card")
    second.press("approve")
    second.gone("approval-card")
    second.open_chat(chat_of(server))
    second.until_text("answer", "ran")
    assert (server.home.workspace / "out.txt").read_text() == "yes\n"


def test_a_denial_shows_as_the_calls_result(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "touch driven"})), text("no then"))
    window = browse(server)
    window.say("run")
    window.type("feedback", "rather not")
    window.press("deny")
    window.until_text("answer", "no then")
    card = window.one("tool-card")
    assert "Denied" in card.text
    card.find_element(By.CSS_SELECTOR, "button").click()
    window.until_text("tool-card", "rather not")
    assert not (server.home.workspace / "driven").exists()
    window.driver.refresh()
    window.until_text("tool-card", "Denied")


def test_approving_one_call_decides_that_one_alone(server, provider, browse):
    provider.plan(tools(*[call("run_shell", {"command": f"echo {n} >> log.txt"}, f"call_{n}") for n in range(3)]), text("done"))
    window = browse(server)
    window.say("three")
    window.until(lambda: len(window.all("approval-card")) == 3, "three cards")
    waiting = {each["approval_id"]: json.loads(each["tool_input"])["command"] for each in server.client.get("/approvals").json["approvals"]}
    second = window.all("approval-card")[1]
    assert waiting[second.get_attribute("data-approval")] == "echo 1 >> log.txt" and "echo 1" in second.text
    button = second.find_element(By.CSS_SELECTOR, "[data-testid=approve]")
    window.script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    window.until(lambda: len(window.all("approval-card")) == 2, "two cards")
    assert sorted(json.loads(each["tool_input"])["command"] for each in server.client.get("/approvals").json["approvals"]) == ["echo 0 >> log.txt", "echo 2 >> log.txt"]
    window.press("deny-all")
    window.until_text("answer", "done")
    assert (server.home.workspace / "log.txt").read_text() == "1\n"


def test_all_are_denied_at_once(server, provider, browse):
    provider.plan(tools(*[call("run_shell", {"command": f"echo {n} >> log.txt"}, f"call_{n}") for n in range(3)]), text("none then"))
    window = browse(server)
    window.say("three")
    window.until(lambda: len(window.all("approval-card")) == 3, "three cards")
    window.press("deny-all")
    window.until_text("answer", "none then")
    assert not (server.home.workspace / "log.txt").exists()


def test_an_approval_may_follow_on_another(server, provider, browse):
    for n in range(3):
        provider.plan(tools(call("run_shell", {"command": f"echo {n} >> log.txt"}, f"call_{n}")))
    provider.plan(text("done"))
    window = browse(server)
    window.say("one after the other")
    for n in range(3):
        window.until(lambda n=n: f"echo {n}" in window.text("approval-card"), f"request {n}")
        window.press("approve")
    window.until_text("answer", "done")
    assert (server.home.workspace / "log.txt").read_text() == "0\n1\n2\n"


def test_a_lasting_yes_is_listed_and_taken_back(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "true"}, "call_1")), text("first"))
    window = browse(server)
    window.say("run")
    window.one("scope").find_element(By.CSS_SELECTOR, "option[value=always]").click()
    window.press("approve")
    window.until_text("answer", "first")
    # Not asked again, not even in another chat.
    provider.plan(tools(call("run_shell", {"command": "true"}, "call_2")), text("second"))
    window.press("new-chat")
    window.say("run again")
    window.until_text("answer", "second")
    assert not window.all("approval-card")
    window.press("tab-settings")
    window.until_text("grant", "run_shell")
    window.one("grant").find_element(By.CSS_SELECTOR, "button").click()
    window.gone("grant")
    assert server.client.get("/grants").json["grants"] == []
    provider.plan(tools(call("run_shell", {"command": "true"}, "call_3")), text("third"))
    window.press("tab-chat")
    window.say("once more")
    window.press("approve")
    window.until_text("answer", "third")


ASKING = r"""
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
schema = {"type": "object", "required": ["name", "kind"], "properties": {"name": {"type": "string", "title": "Your name"}, "age": {"type": "integer", "minimum": 0},
          "kind": {"type": "string", "enum": ["cat", "dog"]}, "tame": {"type": "boolean", "default": True}}}
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = {"tools": [{"name": "ask", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    elif request.get("method") == "tools/call":
        mode = sys.argv[1]
        asked = {"message": "About your animal", **({"requestedSchema": schema} if mode == "form" else {"mode": "url", "url": "http://127.0.0.3:9/there", "elicitationId": "e"})}
        say({"id": "e1", "method": "elicitation/create", "params": asked})
        answer = json.loads(sys.stdin.readline())
        result = {"content": [{"type": "text", "text": json.dumps(answer.get("result", answer))}]}
    if "id" in request:
        say({"id": request["id"], "result": result})
"""


def asking(make_server, provider, mode):
    server = make_server(provider, config={"mcpServers": {"f": {"command": sys.executable, "args": ["-c", ASKING, mode]}}, "approval_mode": "approve_all"})
    eventually(lambda: any(tool["name"] == "f__ask" for tool in server.client.get("/tools").json["tools"]), "the tool", 30 * SLACK)
    provider.plan(tools(call("f__ask", {})), text("understood"))
    return server


def test_a_question_is_a_form(make_server, provider, browse):
    server = asking(make_server, provider, "form")
    window = browse(server)
    window.say("ask me")
    card = window.one("input-card")
    assert "About your animal" in card.text and "Your name" in card.text
    field = {each.get_attribute("name"): each for each in card.find_elements(By.CSS_SELECTOR, "input, select, textarea")}
    assert list(field) == ["name", "age", "kind", "tame"] and field["tame"].is_selected()
    window.press("input-send")  # a required field is empty, so the browser complains
    assert window.all("input-card")
    field["name"].send_keys("Ann")
    field["age"].send_keys("7")
    next(each for each in field["kind"].find_elements(By.CSS_SELECTOR, "option") if each.text == "dog").click()
    field["tame"].click()
    window.press("input-send")
    window.until_text("answer", "understood")
    said = json.loads(provider.requests[-1].conversation[-1]["content"])
    assert said == {"action": "accept", "content": {"name": "Ann", "age": 7, "kind": "dog", "tame": False}}


def test_a_question_is_an_address(make_server, provider, browse):
    """The whole address is shown, and the page opens it only on a click."""
    server = asking(make_server, provider, "url")
    window = browse(server)
    window.say("ask me")
    card = window.one("input-card")
    assert "http://127.0.0.3:9/there" in card.text
    link = card.find_element(By.CSS_SELECTOR, "a")
    assert link.get_attribute("href") == "http://127.0.0.3:9/there" and {"noopener", "noreferrer"} <= set(link.get_attribute("rel").split())
    window.press("input-send")
    window.until_text("answer", "understood")
    assert '"accept"' in provider.requests[-1].conversation[-1]["content"]


def test_a_question_is_declined(server, provider, browse):
    provider.plan(tools(call("ask_human", {"question": "Your name?"})), text("as you like"))
    window = browse(server)
    window.say("ask")
    window.press("input-decline")
    window.until_text("answer", "as you like")
    window.gone("input-card")


def test_a_confirmation_happens_in_the_conversation(make_server, provider, browse, tmp_path):
    removing = {"command": sys.executable, "args": ["-c", REMOVING, str(tmp_path / "removed")]}
    server = make_server(provider, config={"mcpServers": {"r": removing}, "approval_mode": "approve_all"})
    eventually(lambda: any(tool["name"] == "r__remove" for tool in server.client.get("/tools").json["tools"]), "the tool", 30 * SLACK)
    window = browse(server)
    provider.plan(tools(call("r__remove", {"what": "all"})), text("Shall I remove it for ever?"))
    window.say("remove all")
    window.until_text("answer", "Shall I remove it for ever?")
    assert not window.css("dialog[open]") and not window.all("approval-card") and not window.all("input-card")
    provider.plan(tools(call("r__remove", {"what": "all", "confirmed": True}, "call_2")), text("It is gone."))
    window.say("yes")
    window.until_text("answer", "It is gone.")
    assert (tmp_path / "removed").read_text() == "all\n"
    window.press("tab-trace")
    window.until_text("trace", "TOOL_RESULT")


# --- the agent at work -------------------------------------------------------------------------------------------------

def test_a_message_to_a_chat_that_works_for_another_waits(server, provider, browse):
    gate = Gate()
    provider.plan(text("for the other ", gate))
    stream = server.client.start("c", "from curl")
    stream.until("text_delta")
    window = browse(server, "/#c")
    window.until_text("answer", "for the other")
    window.say("from the page")
    assert window.one("queue").find_element(By.CSS_SELECTOR, "textarea").get_attribute("value") == "from the page"
    provider.plan(text("for the page"))
    gate.release()
    stream.finish()
    window.until_text("answer", "for the page")


def test_the_terminal_and_the_page_share_a_conversation(server, provider, browse):
    provider.plan(text("said at the page"))
    window = browse(server)
    window.say("hello")
    window.until_text("answer", "said at the page")
    gate = Gate()
    provider.plan(text("said ", gate, "at the terminal"))
    terminal = subprocess.Popen([str(BINARY), "chat", chat_of(server), "--url", f"http://127.0.0.1:{server.port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=server.home.environment(), text=True)
    terminal.stdin.write("and here\n")
    terminal.stdin.flush()
    window.until(lambda: [e.text for e in window.all("user-message")] == ["hello", "and here"], "the other's question")
    window.until_text("answer", "said")
    gate.release()
    window.until_text("answer", "said at the terminal")
    provider.plan(text("fine"))
    idle(window, 2)
    window.say("back at the page")
    window.until_text("answer", "fine")
    out, _ = terminal.communicate("/history\n", timeout=SOON)
    assert terminal.returncode == 0 and "back at the page" in out and "said at the terminal" in out


def test_everything_can_be_used_while_the_agent_works(server, provider, browse):
    gate = Gate()
    provider.plan(text("working ", gate, "done"))
    window = browse(server)
    window.say("begin")
    window.until_text("answer", "working")
    for view in ("inbox", "board", "branches", "trace", "settings", "chat"):
        window.press(f"tab-{view}")
    window.type("composer", "a thought")
    window.press("new-chat")
    provider.plan(text("meanwhile"))
    window.say("another")
    window.until_text("answer", "meanwhile")
    gate.release()
    window.until(lambda: not window.all("chat-item[data-status=running]"), "the end of both")
    window.open_chat(next(c["id"] for c in server.client.get("/chats").json["chats"] if c["title"] == "begin"))
    window.until_text("answer", "working done")
    assert window.one("composer").get_attribute("value") == "a thought"


def test_the_output_of_a_command_is_shown_as_it_comes(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    os.mkfifo(server.home.workspace / "go")
    provider.plan(tools(call("run_shell", {"command": "echo first; cat go; echo la''st"})), text("ran"))
    window = browse(server)
    window.say("run")
    window.until_text("tool-card", "first")
    card = window.one("tool-card")
    assert "running" in card.text and "last" not in card.text
    with open(server.home.workspace / "go", "w") as pipe:
        pipe.write("second\n")
    window.until_text("answer", "ran")
    card = window.one("tool-card")
    if "last" not in card.text:
        card.find_element(By.CSS_SELECTOR, "button").click()
    window.until(lambda: all(word in window.text("tool-card") for word in ("first", "second", "last")), "all of the output")
    assert "running" not in window.text("tool-card")


def test_tasks_and_plan_stand_in_the_chat_and_on_the_board(server, provider, browse):
    gate = Gate()
    provider.plan(tools(call("update_plan", {"steps": ["Look", "Leap"]}, "p"), call("manage_tasks", {"action": "add", "title": "Buy milk"}, "t")), text(gate, "planned"))
    window = browse(server)
    window.say("plan")
    gate.wait_reached()
    window.until_text("agenda", "Buy milk")
    window.one("agenda").find_element(By.CSS_SELECTOR, "button").click()
    window.until(lambda: all(word in window.text("agenda") for word in ("Look", "Leap", "Buy milk", "0 of 1")), "plan and task, while it works")
    gate.release()
    window.until_text("answer", "planned")
    window.press("tab-board")
    window.until(lambda: [each.get_attribute("value") for each in window.css("[data-testid=plan] textarea")][:2] == ["Look", "Leap"], "the plan")
    assert window.one("task").find_element(By.CSS_SELECTOR, "textarea").get_attribute("value") == "Buy milk"
    # The open view is updated, too.
    provider.plan(tools(call("manage_tasks", {"action": "add", "title": "Drink it"}, "t2")), text("noted"))
    server.client.turn(chat_of(server), "more")
    window.until(lambda: len(window.all("task")) == 2, "the second task")


def column(window, name):
    return next(each for each in window.all("board")[0].find_elements(By.CSS_SELECTOR, "section") if each.get_attribute("aria-label") == name)


def test_tasks_are_dragged_renamed_and_removed(server, provider, browse):
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    window = browse(server, "/#c")
    window.until_text("answer", "ok")
    window.press("tab-board")
    for title in ("Buy milk", "Drink it"):
        window.type("add-task", title)
        window.type("add-task", Keys.ENTER)
        window.until(lambda title=title: title in [each.find_element(By.CSS_SELECTOR, "textarea").get_attribute("value") for each in window.all("task")], title)

    def tasks():
        return [(task["title"], task["status"]) for task in server.client.get("/chats/c/tasks").json["tasks"]]

    task = window.all("task")[0]
    edge = webdriver.ActionChains(window.driver).move_to_element_with_offset(task, -task.size["width"] // 2 + 3, 0)
    edge.click_and_hold().move_to_element(column(window, "Done")).move_by_offset(3, 3).release().perform()
    window.until(lambda: tasks() == [("Buy milk", "done"), ("Drink it", "todo")], "the task in its new column")
    window.until(lambda: len(column(window, "Done").find_elements(By.CSS_SELECTOR, "[data-testid=task]")) == 1, "the card there")
    handle = column(window, "To do").find_element(By.CSS_SELECTOR, "[data-testid=task] textarea")
    handle.send_keys(Keys.END, " slowly", Keys.TAB)
    window.until(lambda: ("Drink it slowly", "todo") in tasks(), "the new title")
    column(window, "To do").find_element(By.CSS_SELECTOR, "[data-testid=task] button").click()
    window.until(lambda: tasks() == [("Buy milk", "done")], "the end of one")


def test_older_messages_are_summed_up_on_request(server, provider, browse):
    window = browse(server)
    for n in range(2):
        provider.plan(text(f"a rather long answer {n} " * 50))
        window.say(f"question {n}")
        idle(window, n + 1)
    provider.plan(text("What was said, in short."))
    window.keys(Keys.CONTROL, "k")
    window.one("palette").find_element(By.CSS_SELECTOR, "input").send_keys("summarize", Keys.ENTER)
    window.one("note-compacted")
    window.until(lambda: window.one("turns").get_attribute("aria-busy") == "false", "the end")
    provider.plan(text("going on"))
    window.say("next")
    window.until_text("answer", "going on")
    asked = json.dumps(provider.requests[-1].body)
    assert "What was said, in short." in asked and "long answer 0" not in asked


def test_waiting_messages_are_changed_and_removed(server, provider, browse):
    gate = Gate()
    provider.plan(text("one ", gate))
    window = browse(server)
    window.say("first")
    window.until_text("answer", "one")
    for words in ("second", "third"):
        window.say(words)
        window.until(lambda words=words: words in [each.get_attribute("value") for each in window.css("[data-testid=queue] textarea")], words)
    field = window.css("[data-testid=queue] textarea")[0]
    field.send_keys(Keys.END, ", but better", Keys.TAB)
    chat = chat_of(server)
    window.until(lambda: [each["user_message"] for each in server.client.get(f"/chats/{chat}/queue").json["queue"]] == ["second, but better", "third"], "the change")
    window.css("[data-testid=queue] li")[1].find_element(By.CSS_SELECTOR, "button").click()
    window.until(lambda: len(window.css("[data-testid=queue] li")) == 1, "the end of one")
    provider.plan(text("two"))
    gate.release()
    window.until_text("answer", "two")
    window.gone("queue")
    assert [e.text for e in window.all("user-message")] == ["first", "second, but better"]


def test_an_error_in_mid_answer_keeps_what_was_said(server, provider, browse):
    provider.plan(Reply([delta({"content": "half of it"}), CUT]))
    window = browse(server)
    window.say("go")
    note = window.one("error-note")
    assert "half of it" in window.one("turn").text and window.one("turn").get_attribute("data-status") == "FAILED"
    assert not window.css(".busy") and window.one("turns").get_attribute("aria-busy") == "false"
    provider.plan(text("whole"))
    note.find_elements(By.CSS_SELECTOR, "button")[-1].click()
    window.until(lambda: [e.text for e in window.all("answer")] == ["whole"], "the answer")


def test_a_stopped_question_is_taken_back_and_asked_again(server, provider, browse):
    gate = Gate()
    provider.plan(text("before"))
    window = browse(server)
    window.say("first")
    window.until_text("answer", "before")
    provider.plan(text(gate, "never"))
    window.say("too quick")
    gate.wait_reached()
    window.press("stop")
    window.until(lambda: window.one("turn").get_attribute("data-status") == "CANCELLED", "the end")
    window.all("edit-message")[-1].click()
    assert window.one("edit-text").get_attribute("value") == "too quick"
    window.type("edit-text", "as it was meant", clear=True)
    provider.plan(text("and so it is"))
    window.press("edit-run")
    window.until_text("answer", "and so it is")
    assert [e.text for e in window.all("user-message")] == ["first", "as it was meant"]
    assert [m["content"] for m in provider.requests[-1].conversation] == ["first", "before", "as it was meant"]


# --- chats -------------------------------------------------------------------------------------------------------------

def test_a_chat_is_made_and_named_by_its_first_message(server, provider, browse):
    provider.plan(text("ok"))
    window = browse(server)
    window.one("composer")
    assert server.client.get("/chats").json["chats"] == []
    window.say("A title of the first message\nand more of it")
    window.until_text("answer", "ok")
    chat = server.client.get("/chats").json["chats"][0]
    assert window.text("chat-item").startswith(chat["title"]) and chat["title"].startswith("A title of the first message")
    assert window.script("return location.hash") == f"#{chat['id']}" and window.driver.title.endswith(chat["title"])


def test_the_open_chat_is_remembered(server, provider, browse):
    for name in ("a", "b"):
        provider.plan(text(f"answer {name}"))
        server.client.turn(name, f"question {name}")
    window = browse(server)
    window.open_chat("a")
    window.until_text("answer", "answer a")
    window.open_chat("b")
    window.until_text("answer", "answer b")
    window.driver.refresh()
    window.until_text("answer", "answer b")
    window.driver.back()
    window.until_text("answer", "answer a")
    window.driver.forward()
    window.until_text("answer", "answer b")


LATER = """const days = DAYS * 86400000, Real = Date;
window.Date = class extends Real { constructor(...all) { if (all.length > 0) super(...all); else super(Real.now() + days); } static now() { return Real.now() + days; } };"""


def test_chats_are_listed_by_age_with_the_newest_first(server, provider, browse):
    for name in ("a", "b"):
        provider.plan(text("ok"))
        server.client.turn(name, f"question {name}")
    window = browse(server)
    window.until(lambda: [e.get_attribute("data-chat") for e in window.all("chat-item")] == ["b", "a"], "the newest first")
    assert "Today" in window.text("sidebar")
    provider.plan(text("again"))
    server.client.turn("a", "more")
    window.until(lambda: [e.get_attribute("data-chat") for e in window.all("chat-item")] == ["a", "b"], "a new order after the turn")
    for days, name in ((1, "Yesterday"), (4, "This week"), (30, "Older")):
        script = window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": LATER.replace("DAYS", str(days))})
        window.driver.refresh()
        window.until(lambda name=name: name in window.text("sidebar") and len(window.all("chat-item")) == 2, name)
        assert "Today" not in window.text("sidebar")
        window.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_a_reload_in_mid_answer_loses_nothing(server, provider, browse):
    gate = Gate()
    provider.plan(Reply([delta({"reasoning_content": "First this."}), *[delta({"content": f"word{n} "}) for n in range(200)], gate, *text("the **end**").steps]))
    window = browse(server)
    window.say("go")
    window.until_text("answer", "word199")
    window.driver.refresh()
    window.until(lambda: all(f"word{n}" in window.text("answer").split() for n in (0, 100, 199)), "all that was said before")
    assert window.one("turns").get_attribute("aria-busy") == "true" and window.one("thinking")
    gate.release()
    window.until(lambda: window.one("turns").get_attribute("aria-busy") == "false", "the end")
    assert window.text("answer").split() == [*[f"word{n}" for n in range(200)], "the", "end"]
    stored = next(e["content"] for e in server.client.interaction(chat_of(server), "int_001")["agent_events"] if e["type"] == "ANSWER")
    assert stored.replace("**", "").split() == window.text("answer").split()


def test_the_model_is_picked(make_server, provider, browse):
    listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in ("scripted", "other")]}
    provider.listing = Reply([json.dumps(listed).encode()], content_type="application/json")
    server = make_server(provider)
    window = browse(server)
    window.press("model")
    window.until(lambda: any("test/other" in each.text for each in window.all("model-option")), "the other model")
    window.type("model-search", "oth")
    window.until(lambda: ["test/other" in each.text for each in window.all("model-option")] == [True], "it alone")
    window.type("model-search", Keys.ENTER)
    window.until_text("model", "test/other")
    provider.plan(text("by the other"))
    window.say("hello")
    window.until_text("answer", "by the other")
    assert provider.requests[-1].body["model"] == "other" and "test/other" in window.text("turn-usage")


def test_the_question_stays_in_sight_and_is_edited_there(server, provider, browse):
    provider.plan(text("\n\n".join(f"Paragraph {n}" for n in range(200))), text("better"))
    window = browse(server)
    window.say("tell me all")
    idle(window, 1)
    window.until(lambda: "Paragraph 199" in window.text("answer"), "the answer")
    window.script("const log = document.querySelector('[data-testid=turns]'); log.scrollTop = log.scrollHeight / 2")

    def place():
        question, log = window.one("user-message").rect, window.one("turns").rect
        return question["y"] - log["y"], question["height"]

    window.until(lambda: -1 <= place()[0] < 60 and place()[1] > 10, "the question at the top of the log")
    window.one("edit-message").click()
    window.type("edit-text", "tell me less", clear=True)
    window.press("edit-run")
    window.until_text("answer", "better")
    assert [e.text for e in window.all("user-message")] == ["tell me less"] and len(window.all("turn")) == 1


def test_an_edit_names_the_effects_that_stay(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("write_file", {"path": "report.md", "content": "x"})), text("written"))
    window = browse(server)
    window.say("write")
    window.until_text("answer", "written")
    window.press("edit-message")
    window.until_text("edit-preview", "report.md")
    assert "Write report.md" in window.text("side-effects")
    window.keys(Keys.ESCAPE)
    window.gone("edit-preview")
    assert len(server.client.history(chat_of(server), "all")["interactions"]) == 1


# --- what can be seen of it --------------------------------------------------------------------------------------------

def test_rounds_and_steps_are_in_the_trace(server, provider, browse):
    provider.plan(tools(call("echo", {"text": "x"}, "call_1"), say="I look first."), tools(call("run_shell", {"command": "true"}, "call_2")), text("done"))
    window = browse(server)
    window.say("go")
    window.press("approve")
    window.until_text("answer", "done")
    window.press("tab-trace")
    window.until(lambda: all(word in window.text("trace") for word in ("TOOL_CALL", "TOOL_RESULT", "APPROVAL_REQUIRED", "ANSWER", "INTERACTION_COMPLETE")), "the events")
    bars = [each.text for each in window.css("[data-testid=waterfall] .label")]
    assert bars == ["Model, round 1", "Echo", "Model, round 2", "Wait: Command", "Command", "Model, round 3"]


def test_usage_and_context_are_told(make_server, provider, browse):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 10000, "input_price_per_mtok": 1000, "output_price_per_mtok": 2000}}})
    provider.plan(text("hello", usage=(2500, 100)))
    window = browse(server)
    window.say("hi")
    window.until_text("answer", "hello")
    window.until(lambda: "2,600 tokens" in window.text("meter"), "the tokens")
    window.until(lambda: "% of the context" in window.text("meter"), "the context")
    share = int(window.text("meter").split("%")[0].split()[-1])
    assert 25 <= share <= 27


def test_title_and_icon_tell_what_goes_on(server, provider, browse):
    window = browse(server)
    window.one("composer")

    def icon():
        return window.css("link[rel=icon]")[0].get_attribute("href")

    quiet = window.until(lambda: icon() if icon().startswith("data:image") else None, "the icon")
    gate = Gate()
    provider.plan(Reply([gate, *tools(call("run_shell", {"command": "true"})).steps]))
    window.say("run")
    busy = window.until(lambda: icon() if icon() != quiet else None, "another icon while it works")
    assert window.driver.title != "run"
    gate.release()
    window.one("approval-card")
    window.until(lambda: window.driver.title.startswith("(1) "), "the number of what waits")
    assert icon() not in (quiet, busy)
    provider.plan(text("done"))
    window.press("approve")
    window.until_text("answer", "done")
    window.until(lambda: window.driver.title == "run" and icon() == quiet, "quiet again")


def test_where_a_replay_differs_is_shown(make_server, provider, browse):
    server = make_server(provider, plain=True)
    server.check_records = False  # one record is changed by hand
    provider.plan(tools(call("echo", {"text": "x"})), text("finished"))
    events = server.client.turn("c", "go").events
    file = server.home.checkpoint_file("c", "int_001")
    stored = json.loads(file.read_text())
    result = next(e for e in stored["agent_events"] if e["type"] == "TOOL_RESULT")
    result["tool_output"] = "something else"
    file.write_text(json.dumps(stored))
    window = browse(server, "/#c")
    window.until_text("answer", "finished")
    window.press("replay")
    window.press("verify")
    window.until_text("verified", "something else")
    assert f"event {result['seq']}" in window.text("verified") and len(events) > result["seq"]


def written(window):
    return window.one("composer").get_attribute("value")


def sent_by(server, interaction="int_001"):
    """The message and the names of its attached files."""
    sent = server.client.interaction(chat_of(server), interaction)
    return sent["user_message"], [each["filename"] for each in sent.get("attachments", [])]


def test_a_file_of_the_workspace_is_chosen_behind_an_at_sign(server, provider, browse):
    workspace = server.home.workspace
    (workspace / "src").mkdir()
    (workspace / "src" / "engine.txt").write_text("the words of the engine")
    (workspace / "src" / "my engine notes.txt").write_text("the words of the notes")
    (workspace / ".gitignore").write_text("*.o\n")
    (workspace / "src" / "engine.o").write_text("x")
    window = browse(server)
    # Before a chat exists, by keyboard alone.
    window.type("composer", "compare @eng")
    window.until(lambda: [each.text for each in window.css("[data-testid=suggestions] [role=option]")] == ["src/engine.txt", "src/my engine notes.txt"], "what there is")
    window.type("composer", Keys.ENTER)
    window.until_text("attachments", "src/engine.txt")
    window.until(lambda: written(window) == "compare @src/engine.txt ", "the words, in the box of the new chat")
    window.type("composer", "with @NOTES")
    window.until(lambda: window.text("suggestions") == "src/my engine notes.txt", "the other")
    window.one("suggestions").find_element(By.CSS_SELECTOR, "[role=option]").click()
    window.until(lambda: written(window) == 'compare @src/engine.txt with @"src/my engine notes.txt" ', "its name in quotes")
    window.until(lambda: len(window.all("attachment[data-state=there]")) == 2, "both")
    provider.plan(text("compared"))
    window.type("composer", Keys.ENTER)
    window.until_text("answer", "compared")
    assert written(window) == "" and not window.all("attachment")
    assert sent_by(server) == ('compare @src/engine.txt with @"src/my engine notes.txt" ', ["engine.txt", "my engine notes.txt"])
    told = json.dumps(provider.requests[-1].body)
    assert "the words of the engine" in told and "the words of the notes" in told
    # Named again, the file is attached as it is now. The chat's own copy is offered after it.
    (workspace / "src" / "engine.txt").write_text("other words")
    window.type("composer", "again @engine.t")
    window.until(lambda: window.text("suggestions").split("\n") == ["src/engine.txt", "engine.txt", "in this chat"], "both")
    provider.plan(text("seen"))
    window.type("composer", Keys.TAB)
    window.until(lambda: window.all("attachment[data-state=there]"), "the file")
    window.type("composer", Keys.ENTER)
    window.until_text("answer", "seen")
    assert "other words" in json.dumps(provider.requests[-1].body)
    window.press("new-chat")
    window.until(lambda: written(window) == "", "nothing left of a draft")


TOOLS_LATE = """const usual = window.fetch;
    window.fetch = async (where, ...more) => { if (String(where).endsWith("/tools")) await new Promise((go) => setTimeout(go, 1500)); return usual(where, ...more); };"""


@pytest.mark.parametrize("script", [None, TOOLS_LATE], ids=["usual", "sent_before_the_page_knows_of_a_workspace"])
def test_files_that_a_message_names_go_along_whoever_wrote_the_name(make_server, provider, browse, script):
    server = make_server(provider, config={"tools": {"rules": [{"tool": "read_file", "pattern": "private/**", "action": "deny"}]}})
    workspace = server.home.workspace
    (workspace / "docs").mkdir()
    (workspace / "private").mkdir()
    (workspace / "private" / "plan.txt").write_text("nobody reads this")
    (workspace / "a.txt").write_text("words of a")
    (workspace / "b c.txt").write_text("words of b")
    window = browse(server, script=script)
    provider.plan(text("first"))
    # As if pasted: nothing was picked from the list. Names of people and folders are no files, and neither is text within a word.
    window.script("""const box = document.querySelector('[data-testid=composer]');
        Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(box, arguments[0]);
        box.dispatchEvent(new Event('input', {bubbles: true}));""", '@ann see @a.txt and @"b c.txt", mail x@a.txt @a.txt @docs')
    window.press("send")
    window.until_text("answer", "first")
    assert sent_by(server) == ('@ann see @a.txt and @"b c.txt", mail x@a.txt @a.txt @docs', ["a.txt", "b c.txt"])
    # The name of a missing file is sent as text, with a notice.
    provider.plan(text("second"))
    window.type("composer", "and @gone.txt ")
    window.type("composer", Keys.ENTER)
    window.until(lambda: "There is no file gone.txt here" in window.css("body")[0].text, "the notice")
    window.until_text("answer", "second")
    assert sent_by(server, "int_002") == ("and @gone.txt ", [])
    # A file that exists but cannot be attached stops the message until its card is removed; then the name is text.
    window.type("composer", "now @private/plan.txt ")
    window.type("composer", Keys.ENTER)
    window.until(lambda: "may not read this file" in window.text("attachment[data-state=failed]"), "why")
    assert written(window) == "now @private/plan.txt " and len(provider.requests) == 2
    window.type("composer", Keys.ENTER)
    window.until(lambda: window.all("attachment[data-state=failed]"), "it stands")
    assert written(window) == "now @private/plan.txt "
    window.one("attachments").find_element(By.CSS_SELECTOR, "button[aria-label='Remove private/plan.txt']").click()
    provider.plan(text("third"))
    window.type("composer", Keys.ENTER)
    window.until_text("answer", "third")
    assert sent_by(server, "int_003") == ("now @private/plan.txt ", []) and "nobody reads this" not in json.dumps([each.body for each in provider.requests])


def test_a_secret_is_neither_offered_nor_named(make_server, make_home, provider, browse):
    home = make_home()
    home.workspace = home.user
    (home.user / ".ssh").mkdir()
    (home.user / ".ssh" / "id_rsa").write_text("a private key")
    (home.user / "id_rsa.md").write_text("how to make one")
    window = browse(make_server(provider, home=home))
    window.type("composer", "@id_r")
    window.until(lambda: window.text("suggestions") == "id_rsa.md", "the file that is not secret")
    window.type("composer", "", clear=True)
    window.type("composer", "@.ssh/id_rsa ")
    window.press("send")
    window.until(lambda: "secrets" in window.text("attachment[data-state=failed]"), "why")
    assert not provider.requests


def test_a_file_that_is_named_here_or_at_the_terminal_is_the_same(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("words of a")
    provider.plan(text("one"))
    terminal = Terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}")
    try:
        terminal.ready().type("look at @workspace/a.txt\r").until("(with a.txt)").until("one").ready()
    finally:
        terminal.kill()
    window = browse(server, "/#c")
    window.until_text("answer", "one")
    provider.plan(text("two"))
    window.type("composer", "look at @a.txt ")
    window.press("send")
    window.until_text("answer", "two")
    first, second = (server.client.interaction("c", each) for each in ("int_001", "int_002"))
    assert first["attachments"] == second["attachments"], "the same file is stored once"
    told = [[each["content"] for each in request.conversation if each["role"] == "user"][-1] for request in provider.requests]
    assert told[0].removeprefix("look at @workspace/a.txt") == told[1].removeprefix("look at @a.txt ") and "words of a" in told[1]


def test_a_file_is_mentioned_by_its_name(server, provider, browse, tmp_path):
    (tmp_path / "notes.txt").write_text("the words of the notes")
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    window = browse(server, "/#c")
    window.until_text("answer", "ok")
    window.all("file")[0].send_keys(str(tmp_path / "notes.txt"))
    window.until_text("attachments", "notes.txt")
    provider.plan(text("seen"))
    window.say("here it is")
    window.until_text("answer", "seen")
    # Later the file is named, and attached again.
    window.type("composer", "what is in @no")
    window.until_text("suggestions", "notes.txt")
    window.type("composer", Keys.ENTER)
    window.until(lambda: window.one("composer").get_attribute("value") == "what is in @notes.txt ", "the name")
    provider.plan(text("words"))
    window.say("?")
    window.until_text("answer", "words")
    sent = server.client.interaction("c", "int_003")
    assert sent["user_message"] == "what is in @notes.txt ?" and [each["filename"] for each in sent["attachments"]] == ["notes.txt"]


def test_an_edited_message_has_the_files_that_it_names(server, provider, browse):
    provider.answer_with(lambda request: text("answered"))
    for name in ("one", "two"):
        (server.home.workspace / f"{name}.txt").write_text(f"content of {name}")
    server.client.turn("c", "hello")
    window = browse(server, "/#c")
    window.until_text("answer", "answered")
    edits = (("look at @one.txt", {"one"}), ("look at @two.txt", {"two"}), ("at @one.txt and @two.txt", {"one", "two"}), ("at nothing", set()))
    for words, files in edits:
        window.all("edit-message")[0].click()
        window.type("edit-text", words, clear=True)
        window.press("edit-run")
        window.until(lambda: [each.text.split("\n")[0] for each in window.all("user-message")] == [words] and window.all("answer"), words)
        assert {name for name in ("one", "two") if f"content of {name}" in str(provider.requests[-1].messages[-1])} == files, words
