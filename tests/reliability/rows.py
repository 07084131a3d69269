"""What must never happen, row by row: the promise, the fault, and the tests that show that it holds."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row.

    Args:
        number: by which others name it.
        promise: what holds.
        fault: what was done to break it.
        tests: "file::name" below tests/.
        limits: what of the row no test shows.
        command: a measurement beside the tests: the words after `python -m`.
        repeats: how often a full run repeats the tests; they draw their moments anew.
    """

    number: int
    promise: str
    fault: str
    tests: Sequence[str]
    limits: str = ""
    command: Sequence[str] = ()
    repeats: int = 1


_KILLS = "protocol/test_kills.py"
_SIMULATION = "simulation/test_simulation.py"
_THOUSAND = f"{_SIMULATION}::test_a_thousand_deployments_keep_their_promises"

ROWS = (
    Row(
        number=1,
        promise="a party goes on with the same release after it was killed; nothing is charged or published twice",
        fault="SIGKILL of each role at named points",
        tests=(
            f"{_KILLS}::test_a_party_that_is_killed_and_started_again_continues_the_release",
            f"{_KILLS}::test_every_named_point",
            "protocol/test_collection_kills.py::test_a_server_that_is_killed_at_random_points",
        ),
        repeats=100,
    ),
    Row(
        number=2,
        promise="a disk holds the old state or the new one, never a mixture",
        fault="a kill at every fsync, rename and change of a database of one release, at each party; a power failure at"
        " each of them, after which the disk has any part of what was not synced",
        tests=(
            f"{_KILLS}::test_every_durable_step_of_a_release",
            "curator/test_driver.py::test_a_charged_release_outlives_a_failing_power",
            "curator/test_driver.py::test_a_release_outlives_a_power_that_fails_at_any_step",
            "curator/alignment/test_alignment.py::test_an_alignment_outlives_a_power_that_fails_at_any_step",
            "server/test_releases.py::test_a_release_outlives_a_power_that_fails_at_any_step",
            "researcher/test_receiving.py::test_a_desk_s_release_outlives_a_power_that_fails_at_any_step",
        ),
        limits="killed by a launcher of the tests, not by strace; power fails at parties within one process, whose"
        " peers are played, and not in a private alignment",
    ),
    Row(
        number=3,
        promise="a full disk refuses in words, acknowledges nothing, and the release goes on once there is room",
        fault=(
            "disks of tests that are full before and in the middle of a release or an alignment, or have too little"
            " room for it"
        ),
        tests=(
            "curator/test_driver.py::test_without_room_for_its_columns_a_release_is_neither_planned_nor_charged",
            "curator/alignment/test_alignment.py::test_an_alignment_for_which_there_is_no_room_is_not_begun",
            "server/test_store.py::test_a_release_without_room_is_not_opened",
            "researcher/test_room.py::test_a_release_for_which_there_is_no_room_is_not_fetched",
            "hostile/test_full_disk.py::test_a_disk_that_is_full_before_a_release",
            "hostile/test_full_disk.py::test_a_disk_that_fills_up_in_the_middle_of_a_release",
            "hostile/test_full_disk.py::test_a_disk_that_is_full_while_a_table_is_aligned",
            ("curator/test_workplace.py::test_a_full_disk_of_a_run_is_said_and_with_room_again_the_files_are_the_same"),
            "server/test_postgres.py::test_a_full_disk_of_the_database_is_refused_in_words_and_nothing_is_lost",
        ),
        limits="EIO from a real device is not tried",
    ),
    Row(
        number=4,
        promise="a server process that was paused while another took over publishes nothing",
        fault="SIGSTOP and SIGCONT; a pause at every step",
        tests=(
            "protocol/test_two_servers.py::test_a_server_that_is_paused_while_it_perturbs_cannot_publish_after_another_did",
            "server/test_leases.py::test_a_process_that_is_paused_at_any_step_publishes_nothing_after_another_took_over",
        ),
        limits="needs a PostgreSQL; skipped without one",
    ),
    Row(
        number=5,
        promise="a release outlives absent parties, partitions, loss and delay",
        fault=(
            "parties stopped in order; a proxy before each that delays, loses, breaks and partitions; the same in the"
            " simulated network"
        ),
        tests=(
            "protocol/test_absent_parties.py::test_the_same_command_continues_once_the_party_is_back",
            "protocol/test_networks.py::test_releases_outlive_delay_loss_and_broken_connections",
            "protocol/test_networks.py::test_a_release_goes_on_when_a_partition_ends",
            f"{_SIMULATION}::test_a_deployment_keeps_its_promises",
        ),
        limits="a lost packet is one that comes late, since TCP sends it again; a party that is cut off can still call",
    ),
    Row(
        number=6,
        promise="a repeated request has one effect",
        fault="replies lost after the commit, connections cut",
        tests=(
            "protocol/test_repeats.py::test_a_request_whose_reply_is_lost_is_one_release",
            "protocol/test_repeats.py::test_a_connection_that_is_cut_after_the_request_changes_nothing",
        ),
    ),
    Row(
        number=7,
        promise="a column is the one that was sent, or is refused",
        fault="chunks truncated, repeated, reordered; every byte flipped",
        tests=(
            "server/test_upload.py::test_any_sequence_of_chunks_gives_the_column_or_a_refusal",
            "server/test_upload.py::test_any_flipped_byte_is_found_and_the_column_may_be_sent_again",
            "protocol/test_uploads.py::test_a_chunk_that_was_cut_or_altered_is_refused_and_its_column_can_be_sent_again",
        ),
    ),
    Row(
        number=8,
        promise="an old upload changes nothing",
        fault="stored bytes sent again, with other bytes too",
        tests=("protocol/test_uploads.py::test_a_finished_column_may_come_again_but_only_with_the_same_bytes",),
    ),
    Row(
        number=9,
        promise="identical requests at once are one",
        fault="50 requests, starts and uploads at once",
        tests=(
            "protocol/test_repeats.py::test_fifty_identical_requests_at_once_are_one_release",
            "protocol/test_repeats.py::test_fifty_identical_starts_at_the_researcher_s_service_are_one_release",
            "protocol/test_uploads.py::test_fifty_identical_uploads_at_once_make_one_publication",
        ),
    ),
    Row(
        number=10,
        promise="each RPC answers the roles that its descriptor names, and nobody else",
        fault="every role at every RPC; foreign, missing and exchanged certificates",
        tests=(
            "protocol/test_callers.py::test_every_role_at_every_rpc",
            "protocol/test_callers.py::test_a_certificate_of_another_authority_gets_no_connection",
        ),
    ),
    Row(
        number=11,
        promise="a certificate that expires on an open connection is refused at the next call",
        fault="a certificate of a few seconds",
        tests=(
            "protocol/test_callers.py::test_a_certificate_that_expires_on_an_open_connection_is_refused_at_the_next_call",
        ),
    ),
    Row(
        number=12,
        promise="others are served, and memory is given back, whatever connections do",
        fault="500 half-open connections, a thousand calls that send nothing; nine floods of HTTP/2 frames",
        tests=(
            "common/rpc/test_server.py::test_500_half_open_connections_keep_nobody_waiting",
            "hostile/test_crowding.py::test_half_open_connections_leave_no_memory_behind",
            "hostile/test_crowding.py::test_more_half_open_connections_than_a_shell_allows_files_keep_nobody_out",
            "hostile/test_frames.py::test_others_are_served_and_memory_comes_back",
        ),
        limits=(
            "after 2 GB of header fields without an end gRPC keeps 260 MiB in pieces, not 20; beside them health took"
            " up to 4.7 s on a loaded machine"
        ),
    ),
    Row(
        number=13,
        promise="a symbol outside its alphabet ends the release before anything is perturbed",
        fault="columns with such symbols",
        tests=(
            "protocol/test_uploads.py::test_a_symbol_outside_its_alphabet_ends_the_release_before_perturbation",
            "server/test_perturbation.py::test_a_symbol_outside_its_alphabet_is_found_wherever_it_is",
        ),
    ),
    Row(
        number=14,
        promise="curators that differ stop before anything is charged",
        fault="other study files, plans, samples and tables",
        tests=(
            "protocol/test_refusals.py::test_a_party_with_another_study_file_is_named",
            "curator/test_driver.py::test_another_plan_ends_the_release_with_nothing_charged",
            "curator/test_driver.py::test_another_sample_ends_the_release_before_anything_is_encrypted",
        ),
    ),
    Row(
        number=15,
        promise="no curator chooses the seed",
        fault="shares withheld, exchanged, and not those committed to",
        tests=(
            "curator/test_coordination.py::test_nobody_opens_before_it_holds_every_commitment",
            "curator/test_coordination.py::test_a_share_that_was_not_committed_to_is_caught",
            "curator/test_coordination.py::test_a_curator_that_changes_its_commitment_is_caught_before_anything_is_opened",
            "curator/test_driver.py::test_a_toss_that_hangs_is_logged_once_and_counted_when_the_release_ends",
            "curator/test_driver.py::test_nothing_is_paid_for_with_a_curator_that_aborts_tosses_until_a_person_clears_it",
            "curator/test_driver.py::test_a_curator_that_is_away_until_the_deadline_aborted_nothing",
            "curator/test_driver.py::test_another_process_counts_the_toss_that_a_curator_aborted",
            "curator/test_coordination.py::test_whoever_has_a_share_and_opens_none_withholds_it_and_nobody_else_does",
            (
                "hostile/test_withheld_shares.py::"
                "test_a_curator_that_aborts_tosses_is_counted_and_paid_for_no_more_until_a_person_clears_it"
            ),
        ),
        limits="one that takes the others' shares and is then away counts as well; each abort costs its epsilon",
    ),
    Row(
        number=16,
        promise="a pad is used once",
        fault="keys that repeat, crashes at each step, ciphertexts that are gone",
        tests=(
            "curator/test_store.py::test_a_key_is_spent_once_whatever_it_was_for",
            "curator/test_encryption.py::test_a_crash_before_the_digest_is_recorded_costs_the_key",
            "curator/test_encryption.py::test_a_generator_that_repeats_itself_is_caught",
            f"{_SIMULATION}::test_a_deployment_keeps_its_promises",
        ),
        limits="a curator's restored backup is refused by its peers through the ledger (row 19), not by its pads",
    ),
    Row(
        number=17,
        promise="clocks that are wrong end no release early and move nothing back",
        fault="clocks two days off either way, and jumps: of processes by libfaketime, and on the virtual clock",
        tests=(
            "protocol/test_clocks.py::test_a_party_whose_clock_is_two_days_off",
            "protocol/test_clocks.py::test_a_clock_that_jumps_in_the_middle_of_a_release",
            f"{_SIMULATION}::test_clocks_that_are_two_days_off_or_jump_end_no_release",
        ),
        limits="a deadline nearer than the skew is refused at once; processes need libfaketime and are skipped without",
    ),
    Row(
        number=18,
        promise="the last of a budget has one winner",
        fault="100 threads at one ledger",
        tests=(
            "curator/test_ledger.py::test_a_hundred_threads_race_for_the_last_of_the_budget",
            "curator/test_ledger.py::test_threads_that_charge_the_same_release_charge_it_once",
        ),
    ),
    Row(
        number=19,
        promise="a ledger that was altered, cut or rolled back is refused",
        fault="entries edited, taken out, exchanged; the file restored from a backup or written anew",
        tests=(
            "curator/test_ledger.py::test_an_edited_ledger_is_found_when_it_is_opened",
            "curator/test_ledger.py::test_a_peer_notices_entries_cut_off_the_end",
            "curator/test_ledger.py::test_a_peer_notices_a_restored_backup_even_after_it_has_grown",
            "curator/test_ledger.py::test_a_peer_notices_a_ledger_that_was_written_anew",
        ),
    ),
    Row(
        number=20,
        promise="releases at once keep apart, and reports count once each",
        fault="20 and 50 releases of two researchers, 1,000 nodes on connections of their own, 100,000 reports",
        tests=(
            "protocol/test_repeats.py::test_releases_at_once_of_two_researchers_keep_apart",
            "protocol/test_collection.py::test_1000_nodes_at_once_on_connections_of_their_own_count_once_each",
            "protocol/test_collection.py::test_100_000_reports_count_once_each",
        ),
    ),
    Row(
        number=21,
        promise="no secret is anywhere but with its owner",
        fault="canaries sought in disks, logs and messages",
        tests=("protocol/test_secrets.py::test_secrets_stay_where_they_belong",),
    ),
    Row(
        number=22,
        promise="what a researcher sees keeps its epsilon",
        fault="a black-box audit of whole releases at alpha 1e-3, and of one with 1.05 epsilon",
        tests=(
            "test_audit.py::test_a_release_keeps_its_epsilon",
            "test_audit.py::test_the_audit_flags_five_percent_more",
        ),
        limits="the audited sample is one row of three people; larger ones rest on theory.md and its enumerations",
    ),
    Row(
        number=23,
        promise="what the server sees does not depend on the data",
        fault="chi-square and independence tests of a million symbols; biased pads",
        tests=(
            "protocol/test_servers_view.py::test_a_million_symbols_look_the_same_whatever_the_table",
            "protocol/test_servers_view.py::test_a_bad_pad_is_seen",
        ),
    ),
    Row(
        number=24,
        promise="sizes, order and duration of messages do not depend on symbols",
        fault="the same run with other symbols, message by message; a t-test of the times of two tables, level 1e-3",
        tests=(f"{_SIMULATION}::test_whom_a_party_sends_how_many_bytes_and_when_does_not_depend_on_the_symbols",),
        command=("benchmarks.timing", "--runs", "100000"),
        limits="the order in memory of a table's rows, and so the caches' state, is not equalised",
    ),
    Row(
        number=25,
        promise="whatever protects anyone comes from the operating system or a cipher stream",
        fault="imports of other generators; processes that fork",
        tests=(
            "test_randomness_ban.py::test_no_module_uses_a_statistical_generator",
            "test_forks.py::test_processes_that_were_forked_share_no_secret",
        ),
    ),
    Row(
        number=26,
        promise="a restored copy of the server's state publishes the same noise",
        fault="copies made while perturbing, restored and fetched again",
        tests=(
            "hostile/test_restored_server.py::test_a_restored_copy_publishes_the_same_symbols",
            "server/test_perturbation.py::test_a_copy_of_the_state_publishes_the_same_noise",
        ),
    ),
    Row(
        number=27,
        promise="study files that differ in order, label or bin are refused by name",
        fault="files with exchanged labels, also over old state",
        tests=(
            "hostile/test_other_study.py::test_labels_of_another_order_are_refused_by_name",
            (
                "hostile/test_other_study.py::"
                "test_a_service_that_is_restarted_with_another_file_reads_its_old_results_with_theirs"
            ),
            "curator/test_driver.py::test_a_request_that_was_made_under_another_study_file_costs_nothing",
        ),
        limits="not every field of the study is altered at every party",
    ),
    Row(
        number=28,
        promise="what cannot be computed is refused before any work",
        fault="announcements, epsilons and sizes at their edges; plans that take too long",
        tests=(
            "hostile/test_researcher.py::test_what_nobody_can_compute_is_refused_before_it_is_taken",
            "hostile/test_researcher.py::test_what_cannot_be_planned_ends_uncharged_and_the_others_are_served",
            "curator/test_planning.py::test_what_takes_too_long_is_ended_and_the_next_question_is_answered",
            "hostile/test_server.py::test_what_no_release_of_the_study_can_be_is_refused",
            "protocol/test_refusals.py::test_an_epsilon_that_is_none_is_refused_at_once",
        ),
    ),
    Row(
        number=29,
        promise="requests that wait harm nobody",
        fault="as many requests as a researcher may open; 3,000 requests, and as many that wait as leave one room",
        tests=(
            "hostile/test_researcher.py::test_one_researcher_opens_so_many_requests_and_the_others_are_served",
            "curator/test_looks.py::test_hundreds_that_are_followed_are_asked_about_once",
            "protocol/test_many_requests.py::test_three_thousand_requests_and_hundreds_that_wait",
        ),
        limits="a curator keeps 256 requests open in all, so 400 never wait; who colludes with seven others takes all",
    ),
    Row(
        number=30,
        promise="a peer's streams, numbers and texts are bounded and plain",
        fault="endless tokens and indices, lengths of 2^64 - 1, control characters in every field",
        tests=(
            "hostile/test_peer_streams.py::test_a_greeting_that_no_curator_would_send_ends_nobody",
            "hostile/test_peer_streams.py::test_tokens_without_an_end_fill_no_disk",
            "hostile/test_peer_streams.py::test_indices_without_an_end_fill_no_memory",
            "hostile/test_texts.py::test_every_text_is_plain_or_refused",
            "hostile/test_answers.py::test_what_a_server_says_reaches_a_terminal_as_plain_text",
        ),
    ),
    Row(
        number=31,
        promise="honest nodes report, no matter who takes the places",
        fault=(
            "1,000 calls that send nothing; floods of connections for HTTPS, from one address and many, that begin no"
            " handshake, send no request, or no body"
        ),
        tests=(
            "hostile/test_crowding.py::test_honest_nodes_report_while_a_thousand_calls_send_nothing",
            *(
                f"hostile/test_silent_flood.py::test_honest_nodes_report_during_a_flood_{kind}"
                for kind in (
                    "of_connections_that_begin_no_handshake",
                    "from_many_addresses",
                    "from_their_own_address",
                    "of_handshakes_without_a_request",
                    "of_requests_without_a_body",
                )
            ),
        ),
        limits="all calls over gRPC come from one address; a flood makes at most 1,500 connections a second",
    ),
    Row(
        number=32,
        promise="a budget holds although requests are chosen after seeing results",
        fault="every adaptive adversary on tiny mechanisms",
        tests=(
            "common/privacy/test_filter.py::test_no_adversary_exceeds_the_budget_of_squares",
            "common/privacy/test_filter.py::test_pure_epsilons_are_a_filter_beside_the_squares",
        ),
    ),
    Row(
        number=33,
        promise="what no rule allows is held or refused",
        fault="rules in every order; malformed policies",
        tests=(
            "curator/test_policy.py::test_the_first_rule_that_matches_decides",
            "curator/test_policy.py::test_rules_speak_of_epsilon_delta_and_charge",
            "curator/test_policy.py::test_without_a_file_a_large_delta_is_refused",
            "curator/test_policy.py::test_without_a_policy_a_person_decides",
            "curator/test_policy.py::test_a_malformed_policy_is_refused_with_its_place",
        ),
    ),
    Row(
        number=34,
        promise="SIGTERM ends a party at any moment",
        fault="SIGTERM at random moments of releases, after SIGHUP, on a full disk, and while parties plan",
        tests=(
            "protocol/test_ends.py::test_a_party_ends_at_any_moment",
            "hostile/test_researcher.py::test_a_party_ends_while_it_plans",
            "protocol/test_absent_parties.py::test_a_party_that_is_stopped_in_order_at_any_time_loses_nothing",
        ),
        repeats=14,
    ),
    Row(
        number=35,
        promise="of two releases for the last of the budget exactly one wins",
        fault="races over two and three curators; the long tests run 200",
        tests=(
            "protocol/test_last_of_the_budget.py::test_exactly_one_of_two_requests_has_the_last_of_the_budget",
            "curator/test_driver.py::test_what_is_reserved_for_another_release_is_waited_for_and_what_is_charged_is_not",
        ),
    ),
    Row(
        number=36,
        promise="all invariants hold in whole deployments; no honest release that was charged is lost",
        fault="random operations and faults on a virtual clock and network, by seed",
        tests=(_THOUSAND, f"{_SIMULATION}::test_the_simulation_notices_a_promise_that_is_broken"),
        limits="no nodes; threads run one after another; the disk loses nothing that was written",
    ),
    Row(
        number=37,
        promise="nothing is lost or done twice, no matter who is killed when",
        fault="SIGKILLs of random parties at random moments, two a release; the server with each database",
        tests=("reliability/test_harnesses.py::test_parties_that_are_killed_at_random_moments",),
        command=("tests.reliability.kills",),
        limits="no power failure; the database's own processes are not killed",
    ),
    Row(
        number=38,
        promise="every honest release is ready, health is answered and memory is flat with everything at once",
        fault="half-open connections, held requests, silent calls, rounds of nodes and restarts beside releases",
        tests=("reliability/test_harnesses.py::test_everything_at_once_for_a_moment",),
        command=("tests.reliability.endurance",),
        limits="one deployment on one machine",
    ),
    Row(
        number=39,
        promise="no coalition of roles attains more than the epsilon card says",
        fault="the best attack known of every coalition on a planted person, and on releases that lack one protection",
        tests=(
            "coalitions/test_small_releases.py::test_no_coalition_attains_more_than_the_card_says",
            "coalitions/test_small_releases.py::test_a_protection_that_is_switched_off_is_flagged",
            "coalitions/test_standing_parties.py::test_no_coalition_of_real_parties_attains_more_than_the_card_says",
            "coalitions/test_standing_parties.py::test_a_side_that_adds_no_noise_is_flagged",
            "coalitions/test_standing_parties.py::test_no_curator_can_test_guesses_of_the_server_s_noise",
            "coalitions/test_standing_parties.py::test_a_desk_keeps_counts_alone_and_the_server_nobody_s_id_or_key",
        ),
        limits="six respondents of four cells; no sampling at the server; larger releases rest on docs/coalitions.md",
    ),
    Row(
        number=40,
        promise=(
            "a curator of a large table goes on wherever it was killed, with the same bytes; no file holds an id, and"
            " none but the aligned columns a plain symbol"
        ),
        fault="SIGKILLs of a curator at random moments while it loads, aligns, draws, encrypts and sends",
        tests=(
            "reliability/test_harnesses.py::test_a_curator_of_a_large_table_that_is_killed_at_random_moments",
            "reliability/test_harnesses.py::test_the_search_finds_what_no_file_may_hold",
        ),
        command=("tests.reliability.large_kills", "--rows", "10000000", "--kills", "20"),
        limits="alignment by tokens, in processes of one machine; no power failure; deleted files are not searched",
    ),
    Row(
        number=41,
        promise="what performs a curator's tasks may be lost: the files and the ciphertext are the same, or it is said",
        fault=(
            "SIGKILL of a pool's processes and a cluster's workers in the middle of each pass over a million rows, of"
            " the scheduler, and of the party; tasks that run twice and break off"
        ),
        tests=(
            "curator/test_workplace.py::test_tasks_may_run_twice_and_break_off",
            "curator/test_workplace.py::test_a_pool_whose_processes_are_killed_makes_the_same_files",
            "curator/test_workplace.py::test_a_cluster_whose_workers_are_killed_makes_the_same_files",
            "curator/test_workplace.py::test_a_pool_whose_processes_are_killed_releases_the_same_bytes",
            "curator/test_workplace.py::test_a_cluster_whose_workers_are_killed_releases_the_same_bytes",
            "common/tasks/test_pool.py::test_one_that_is_killed_again_and_again_is_said",
            "common/tasks/test_pool.py::test_workers_do_not_outlive_their_parent",
            "common/tasks/test_dask.py::test_a_scheduler_that_is_lost_is_said_and_so_are_all_workers",
        ),
        limits="clusters of one machine, whose folder is on its own disk and not on a network's",
    ),
    Row(
        number=42,
        promise="a cluster's scheduler and its shared folder show nothing, and what is exchanged there is refused",
        fault="the scheduler's memory searched; results swapped; files altered, exchanged and put in others' places",
        tests=(
            "common/tasks/test_dask.py::test_the_scheduler_sees_neither_tasks_nor_results",
            "common/tasks/test_dask.py::test_results_that_a_scheduler_swaps_are_refused",
            "curator/test_workplace.py::test_remote_tasks_read_and_write_files_of_the_run_alone",
            "curator/test_workplace.py::test_files_that_were_exchanged_in_the_shared_folder_are_not_decrypted",
            "common/storage/test_run_files.py::test_an_altered_byte_is_noticed",
            "common/storage/test_run_files.py::test_no_key_stream_serves_two_files_nor_the_same_file_twice",
        ),
        limits="anyone who commands the scheduler, and not only reads it, runs code at the workers",
    ),
    Row(
        number=43,
        promise="a report over HTTPS that was acknowledged counts once, whichever way and however often it comes",
        fault=(
            "SIGKILL of one of two server processes with one port; each of 300 reports at four connections at once; one"
            " token over HTTPS and gRPC; SIGKILLs of one process in the middle of a commit; a full disk"
        ),
        tests=(
            "protocol/test_http_two_servers.py::test_no_report_that_was_acknowledged_is_lost_with_a_killed_process",
            "protocol/test_http_two_servers.py::test_a_token_that_comes_to_both_at_once_counts_once",
            "protocol/test_http_reports.py::test_no_report_that_was_acknowledged_is_lost_with_a_killed_server",
            "protocol/test_http_reports.py::test_a_token_counts_once_whichever_way_it_comes",
            "server/collection/test_store.py::test_a_disk_that_is_full_counts_nothing_and_spends_nothing",
        ),
        limits="two processes need a PostgreSQL",
    ),
    Row(
        number=44,
        promise="a curator that was killed in a private alignment goes on, and no scalar or masked id stays",
        fault="SIGKILL while it masks, between batches, and before and after each step of its session",
        tests=(
            "protocol/test_private_alignment.py::test_a_curator_killed_while_it_masks_goes_on",
            "protocol/test_private_alignment.py::test_a_curator_killed_anywhere_in_a_private_alignment_goes_on",
            "curator/alignment/test_changed_query.py::test_a_querier_killed_in_any_batch_of_its_check_goes_on_with_the_same_bytes",
        ),
    ),
    Row(
        number=45,
        promise="a table that is small on the disk and large or endless once it is read is refused",
        fault=(
            "values of more than 1 MiB in every form, stated and stored once for many rows; record batches that unpack"
            " to too much; views, queries and compressed files without end; a header of more than 1 MiB"
        ),
        tests=tuple(
            f"curator/tables/test_bounds.py::{name}"
            for name in (
                "test_a_value_is_as_long_as_in_a_text_file_at_most",
                "test_no_text_is_made_of_a_value_that_is_too_long",
                "test_a_parquet_file_that_states_a_value_too_long_is_not_unpacked",
                "test_a_value_that_is_stored_once_for_many_rows_is_made_for_few_of_them_at_once",
                "test_few_rows_of_long_values_are_read_at_once",
                "test_a_record_batch_that_unpacks_to_too_much_is_refused_before_that",
                "test_rows_without_end_are_refused_at_the_studys_limit",
                "test_a_query_that_gives_nothing_is_ended_and_said_so",
                "test_a_header_that_is_too_long_is_told_so",
            )
        ),
        limits="a Parquet file that states short values may hold a page of 2 GiB; a PostgreSQL is not attacked",
    ),
    Row(
        number=46,
        promise="only a person who may decide, in a session that has not ended, sends a form to a console",
        fault="forms that end after their session; forms of readers; links that are old, used or of another console",
        tests=(
            "common/web/test_console.py::test_a_form_that_comes_after_the_end_of_its_session_does_nothing",
            "common/web/test_console.py::test_a_reader_sees_pages_and_sends_nothing",
            "common/web/test_console.py::test_a_link_that_a_command_leaves_begins_a_session_beside_the_others",
            "common/web/test_console.py::test_a_link_that_a_command_leaves_works_for_ten_minutes",
            "common/web/test_console.py::test_only_a_console_that_runs_gets_links_and_none_of_an_earlier_one",
            (
                "curator/console/test_curator_console.py::"
                "test_a_reader_sees_what_a_person_who_decides_sees_without_a_form"
            ),
            "curator/console/test_command.py::test_a_command_gives_new_links_and_ends_no_session",
            "curator/console/test_command.py::test_what_a_stranger_sends_is_not_logged",
        ),
        limits="a console believes the names of its persons",
    ),
    Row(
        number=47,
        promise="a file of a result is its user's alone, no text of a CSV is a formula, and evidence unpacks to what"
        " was signed",
        fault="an open umask; signs behind each mark at which a spreadsheet divides; SIGKILL beside temporary"
        " files; evidence whose files are longer",
        tests=(
            "researcher/test_private_results.py::test_a_file_of_a_result_is_its_users_alone",
            "researcher/test_table.py::test_no_part_of_a_cell_is_a_formula_wherever_a_spreadsheet_divides_it",
            (
                "common/storage/test_temporary.py::"
                "test_the_next_folder_deletes_what_a_kill_left_and_nothing_of_a_process_that_lives"
            ),
            "curator/audit/test_evidence.py::test_what_unpacks_to_more_than_was_signed_is_not_unpacked",
            "curator/audit/test_evidence.py::test_evidence_that_unpacks_to_too_much_is_refused_before_that",
        ),
        limits="no spreadsheet is opened; what a killed console leaves lies there until the next one begins",
    ),
    Row(
        number=48,
        promise="a private alignment names nobody whom a curator does not have, but for guesses in its own table",
        fault="curators that return the querier's masked ids in another order, others for them or those of an earlier"
        " session, at any hop of two, three and four; that begin sessions again and again; and that show too many ids",
        tests=(
            "curator/alignment/test_changed_query.py::test_a_changed_query_names_nobody_and_its_changer_is_named",
            "curator/alignment/test_changed_query.py::test_one_element_changed_at_any_place_names_nobody",
            "curator/alignment/test_changed_query.py::test_the_answer_of_an_earlier_session_names_nobody",
            "curator/alignment/test_private_limits.py::test_a_fourth_session_of_a_peer_waits_for_a_person",
            "curator/alignment/test_private_limits.py::test_a_peer_that_shows_too_many_ids_is_refused",
            "hostile/test_turned_query.py::test_a_curator_that_turns_masked_ids_is_named_nobody_until_a_person_allows_it",
            "hostile/test_turned_query.py::test_of_three_curators_the_one_that_turns_masked_ids_is_named",
        ),
        limits="sets have no such check: with three curators or more, one that gives each id of its own another scalar"
        " learns which of them another has (docs/private-alignment.md)",
    ),
    Row(
        number=49,
        promise="a release certificate or evidence holds by an authority that the checker names, and by nothing else",
        fault=(
            "no authority, an empty one, another's; two statements of a party, every order of them; signatures, digests"
            " and statements altered, exchanged and left out, at the checker and at the desk that makes a certificate"
        ),
        tests=(
            "common/rpc/test_release_certificate.py::test_without_an_authority_that_was_given_nothing_holds",
            "common/rpc/test_release_certificate.py::test_a_party_states_once",
            "common/rpc/test_release_certificate.py::test_the_statements_have_one_order",
            "common/rpc/test_release_certificate.py::test_any_changed_byte_is_noticed",
            "common/rpc/test_signing.py::test_a_signature_has_one_spelling_and_fits_its_text",
            "common/rpc/test_signing.py::test_a_statement_is_of_who_signs_it_and_names_itself",
            "researcher/test_certifying.py::test_a_desk_hands_out_no_certificate_that_does_not_hold",
            "researcher/test_certifying.py::test_a_desk_checks_every_signature",
            "curator/audit/test_evidence.py::test_who_must_have_signed",
            "curator/audit/test_evidence_refusals.py::test_nobody_but_a_curator_signs_evidence",
            "curator/audit/test_replay.py::test_another_request_than_was_received_is_found",
        ),
        limits="an ECDSA signature has two spellings, (r, s) and (r, n - s), which anybody can make of each other",
    ),
    Row(
        number=50,
        promise="no port of a curator's cluster tells anything to a caller without a certificate of the cluster",
        fault="a cluster as docs/operations/cluster.md starts it; every port that its processes listen at is asked",
        tests=(
            "common/tasks/test_documented_cluster.py::test_no_port_of_a_cluster_that_was_started_as_the_page_says_answers_without_a_certificate",
            "common/tasks/test_documented_cluster.py::test_no_command_opens_a_page_to_the_network",
        ),
        limits="one machine; the manifest for Kubernetes and the script for Slurm are compared, and not run",
    ),
    Row(
        number=51,
        promise="a TOML file takes little memory, whatever is in it, before it is read or refused",
        fault="keys and headers of 40,000 parts, long numbers, deep nesting, keys behind quotes, in 512 MiB of memory",
        tests=(
            "common/study/test_toml_text.py::test_no_small_file_takes_much_memory",
            "common/study/test_toml_text.py::test_no_key_of_more_parts_reaches_the_parser",
            "common/study/test_toml_text.py::test_nothing_else_parses_what_others_wrote",
        ),
    ),
    Row(
        number=52,
        promise="nobody but its user and root decides by a file what a party does",
        fault="policies, study files, party's files, identities and their folders that others may write or own; links",
        tests=(
            "common/storage/test_files.py::test_what_others_may_write_is_refused_with_what_to_run",
            "common/storage/test_files.py::test_what_another_user_owns_is_refused_unless_that_is_root",
            "common/storage/test_files.py::test_a_link_is_as_good_as_what_it_leads_to",
            "curator/test_policy.py::test_a_policy_that_others_may_write_is_refused",
            "common/command/test_config.py::test_a_file_that_others_may_write_is_refused",
            "common/study/test_file.py::test_a_study_file_that_others_may_write_is_refused",
            "common/rpc/test_identity.py::test_an_identity_that_others_may_write_is_refused",
            "common/tasks/test_cluster_identity.py::test_an_identity_that_others_may_write_is_refused",
        ),
        limits="a file and its folder, not the folders farther up; a file system that is mounted read-only is trusted",
    ),
    Row(
        number=53,
        promise="a release has one noise, also if the server comes back with a copy from before it",
        fault="the server's state exchanged for such a copy while no curator knows that its columns arrived; servers"
        " that state another noise at each step, or none",
        tests=(
            "hostile/test_restored_server.py::test_a_copy_from_before_a_release_publishes_it_no_second_time",
            "curator/test_upload.py::test_a_server_that_states_another_noise_gets_no_column_and_no_key_leaves",
            "curator/test_upload.py::test_a_server_that_states_no_noise_is_refused",
            "server/test_releases.py::test_a_column_of_another_spec_or_curator_is_refused",
        ),
        limits="a server that lies about its secret can draw twice, as it can without a copy",
    ),
    Row(
        number=54,
        promise="a budget is not spent twice by curators that were all restored, and nobody invents another's ledger",
        fault="all curators restored from copies of one time, with the server or the desk; ledgers invented by somebody"
        " with a curator's certificate",
        tests=(
            "hostile/test_ledgers_of_all.py::test_all_curators_restored_from_one_night_are_noticed",
            "hostile/test_ledgers_of_all.py::test_an_invented_ledger_costs_its_inventor_the_call_and_nobody_else",
            "curator/test_coordination.py::test_an_invented_ledger_is_refused_and_not_remembered",
            "curator/test_cli.py::test_a_ledger_that_another_party_has_seen_longer_is_listed_and_set_aside",
            "researcher/test_witness.py::test_the_longest_ledger_that_is_stated_is_remembered_and_shorter_ones_refused",
        ),
        limits="if the server and all desks were restored with the curators, nobody notices; a desk keeps the heads of"
        " releases that it certified",
    ),
    Row(
        number=55,
        promise="what one curator approves is what all approve, and nobody spends what its persons did not grant",
        fault="another purpose, epsilon or list of attributes to each curator; ids of tables taken before or after;"
        " releases of one curator's attributes alone",
        tests=(
            "hostile/test_researcher.py::test_what_each_curator_was_asked_for_is_compared_before_anything_is_approved",
            "curator/test_progress.py::test_nobody_approves_before_all_have_shown_the_same_request",
            "curator/test_workload.py::test_nobody_else_has_the_id_of_a_table_whoever_asks_first",
            "hostile/test_researcher.py::test_releases_of_alice_s_columns_alone_spend_half_of_bob_s_budget",
            "curator/test_ledger.py::test_releases_without_own_attributes_take_a_part_of_the_budget",
        ),
        limits="a curator that announces a table's id to the server first makes the release fail",
    ),
    Row(
        number=56,
        promise="a curator by which charged releases end is counted, at whichever step, and crowds out nobody",
        fault="other samples, ends, stalls; releases named again and again; many releases at the server's canaries",
        tests=(
            "curator/test_progress.py::test_who_ends_a_charged_release_is_counted_and_who_follows_is_not",
            "curator/test_driver.py::test_a_curator_by_which_a_charged_release_ends_is_counted",
            "curator/test_coordination.py::test_a_release_that_is_named_twice_is_not_said_twice",
            "curator/test_coordination.py::test_a_call_that_names_releases_again_is_read_no_further_for_a_second",
            "server/test_canaries.py::test_the_releases_of_one_curator_do_not_go_before_all_others",
        ),
        limits="a curator that says that the server failed its test is counted as well, as nobody else can see that",
    ),
    Row(
        number=57,
        promise="owners test the same lists of changed canaries before a key leaves, and who states another is named",
        fault="other offsets or symbols, changes left out or added; two lists of one owner; lists and receipts that are"
        " none, or too large to check; curators that are killed between their tests",
        tests=(
            "protocol/test_desk.py::test_a_curator_that_states_other_changes_of_canaries_is_named",
            "protocol/test_kills.py::test_a_party_that_is_killed_and_started_again_continues_the_release",
            "curator/test_driver.py::test_a_curator_whose_list_is_none_ends_the_release_and_is_named",
            "curator/test_driver.py::test_what_a_crash_leaves_of_the_test_of_all_columns_is_gone_on_with",
            "curator/test_server_check.py::test_all_columns_are_tested_on_the_lists_of_their_owners",
            "researcher/test_receiving.py::test_a_curator_that_states_other_changes_than_the_desk_decrypts_is_named",
            "researcher/test_receiving.py::test_who_shows_another_list_to_another_owner_is_named",
            "researcher/test_receiving.py::test_a_curator_that_states_another_result_than_the_lists_show_is_named",
            "common/release/test_receipt.py::test_a_receipt_that_no_test_of_the_release_has_is_not_right",
        ),
        limits="an owner that shows two lists is named together with the one that has the other; which of them is right"
        " about ciphertext that one curator alone saw cannot be settled",
    ),
    Row(
        number=58,
        promise="an analyst reads that the tests of the server passed, and no count of them",
        fault="status, pages, reports and certificates as an analyst asks for them; results with other counts",
        tests=(
            "protocol/test_analysts.py::test_no_count_of_a_test_of_the_server_is_read_by_an_analyst",
            "researcher/test_server_check.py::test_what_an_analyst_reads_is_the_same_whatever_was_counted",
            "researcher/test_presentation.py::test_a_report_shows_the_result_of_every_test_of_the_server_and_no_count",
            "researcher/test_workload.py::test_noise_left_out_over_all_tables_ends_the_release_and_shows_no_count",
        ),
        limits="why a release ended without a result says which count failed",
    ),
    Row(
        number=59,
        promise="an honest server fails the tests of its noise at most once in 10^9 releases, and a careless one fails"
        " them",
        fault="all that a small honest release can be; many honest releases at larger levels; nineteen ways to leave"
        " noise out or to give it another shape",
        tests=(
            "common/core/test_counts.py::test_a_test_accepts_what_the_exact_law_has_it_accept",
            "common/release/test_noise_tests.py::test_columns_pairs_arcs_and_what_was_seen_before_have_their_laws",
            "common/release/test_noise_tests.py::test_amount_places_runs_and_repeats_have_their_laws",
            "common/release/test_noise_power.py::test_honest_servers_fail_no_more_often_than_is_said",
            "common/release/test_noise_power.py::test_of_many_honest_servers_no_more_fail_than_is_said",
            "common/release/test_noise_power.py::test_every_lie_is_caught",
            "common/release/test_noise_power.py::test_of_a_thousand_releases_of_every_lie_one_is_missed_at_the_most",
            "coalitions/test_sum_of_noise.py::test_noise_of_a_known_sum_passes_and_shows_the_desk_a_row_without_the_curators_noise",
        ),
        limits="a server made to deceive passes, as the last of these tests shows; the curators' noise is left then",
    ),
    Row(
        number=60,
        promise="ledger and card show one epsilon for what is spent, at most that of the charged prices; what one more"
        " release may have is admitted",
        fault="a thousand random ledgers, and a thousand random budgets with what others took of them",
        tests=tuple(
            f"curator/test_spent_and_left.py::{name}"
            for name in (
                "test_the_card_says_what_the_ledger_says_is_spent",
                "test_a_large_release_beside_small_ones_shows_one_number",
                "test_what_one_more_release_may_have_is_admitted",
                "test_more_than_one_more_release_may_have_is_refused",
                "test_less_is_said_where_the_kind_is_not_known",
            )
        ),
        limits="a policy or a person may refuse what the budget admits",
    ),
)
