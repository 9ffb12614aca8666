# See rename.sh. The table comes first, then the machinery.
import os, re, subprocess, sys

# --- Files: by base name, wherever they are -----------------------------------------------------------------------
FILES = {
    'LeaseTable.swift': 'RetryTurns.swift',
    'LeaseTableTests.swift': 'RetryTurnsTests.swift',
    'WireWriter+Quoted.swift': 'ByteBuffer+Quoted.swift',
    'LastingStreams.swift': 'LongLivedStreams.swift',
    'UnservedMethod.swift': 'UnimplementedMethod.swift',
    'GatewayServer.swift': 'DatabaseServer.swift',
    'LiveGateway.swift': 'LiveServer.swift',
    'GatewayServerTests.swift': 'DatabaseServerTests.swift',
    'CachePlace.swift': 'CacheLocation.swift',
}

# --- Identifiers: "old new [regex on the path]" ------------------------------------------------------------------
NAMES = r'''
# One word for the exclusive time of a retried transaction: turn.
LeaseTable RetryTurns
LeaseTableTests RetryTurnsTests
Leases Turns DocumentStore
leases turns DocumentStore
leaseIdleMilliseconds turnIdleMilliseconds
leaseHoldMilliseconds turnMilliseconds
leaseWaitMilliseconds turnWaitMilliseconds
heedsLeases waitsForTurns
gaveUp timedOut (RetryTurns|LeaseTable|LockManager)
# Locks and validation.
breakCircles breakDeadlocks
circle cycle LockManager
severalCircles severalCycles
longCircle longCycle
holdsUp parkIfBlocked
isHeldUp isBlocked CommitPipeline
heldUp waiters LockManager
isInTheWay blocksOthers
mayHoldOthersUp mayBlockOthers
judgeAnew rescan ReadValidation
addNewcomers addNewMatches
addChanged addChangedMatches ReadValidation
isUnclear isUndecided
hasReadOneState hasReadOneSnapshot
seenInTwoStates inconsistentVersion
isStill mustChange IndexMaintenance|Housekeeper
isAnything hasKeys IndexMaintenance
isUnderWay isInProgress
isThrough isFinished ExpirySweep
isNudged isWoken
nudge wake CommitQueue|CommitPipeline|DocumentStore\.swift|DocumentStoreTests
spentGroups redundantGroups
DecisionTools DecisionContext
handedOut issued VersionClock|Housekeeper
lastHandedOut lastIssued
takeBack undo SessionTable|StagedCommit|CommitStage|CommitPipeline|CommitApplier
AdaptiveIndexFigures AdaptiveIndexStatistics
figures statistics (AdaptiveIndexes|DocumentStore)\.swift
figuresMilliseconds summaryMilliseconds
logFigures logSummary
scheduleFigures scheduleSummary
patience idleWait CommitPipeline\.swift
patienceMilliseconds idleWaitMilliseconds
resultsPerSessionMaximum resultsPerSessionMax
# Listening and the service.
tellPlan appendPlan
tellSkips appendSkippedResults
skipsTold skipsReported
givePageBack returnPage
wholeLeft wholeRemoved
isServersChoice isChosenByServer
silentTicks ticksSinceMessage
silentTicksMaximum ticksWithoutMessageMax
loseChanges handleLostChanges
baseIsRead finishBase
LastingStream LongLivedStream
LastingStreams LongLivedStreams
lastingStreams longLivedStreams
makeLasting makeLongLived
answeredAtOnce answeredImmediately
callAnsweredAtOnce callAnsweredImmediately
callTook recordDuration
holdIfFull pauseIfFull
holdMessages pauseMessages
releaseMessages resumeMessages
setHeld setPaused
isHeld isPaused
isHeldFromStart isPausedFromStart
isServiceHeld isServicePaused
HeldMessage DeferredMessage
deliverHeld deliverDeferred
keepHeldMessage copyDeferredMessage
UnservedMethod UnimplementedMethod
refuseUnserved refuseUnimplemented
unservedText unimplementedText
GatewayServer DatabaseServer
GatewayServerTests DatabaseServerTests
GatewayConfiguration DatabaseServerConfiguration
LiveGateway LiveServer
fitConnections limitConnections
mayGo releasableBytes ProcessMemory
recentObstacle recentWriteFailure
reportObstacle reportWriteFailure
lastObstacle lastWriteFailure
obstacle writeFailure Housekeeper|MetricsPage|StoreMetrics|StoreStatistics|EngineStatistics|Embedded|EngineCore|Checkpoint|Merge|StorageEngine|KeyValueEngine|MemoryEngine|FaultTests|Disk|Tests
# Transport.
framesPerLook framesPerCheck
messagesPerLook messagesPerCheck
bytesPerLook bytesPerCheck
jobsPerLook jobsPerCheck
tellIfEmpty reportIfEmpty
tellObservers notifyObservers
lastWordsMilliseconds finalStatusMilliseconds
meetForeignServer handleForeignServer
roomForRead readSpace
isIt isSought HTTPHead
handOn forwardMessage HTTP2Session
handOnRequest forwardRequest
HandedOver SubmittedWork EventLoop\.swift
handedOver submittedWork EventLoop\.swift
takeHandedOver takeSubmittedWork
beginAsking beginProducing
forEachOver forEachEnded
Verdict Validity RequestFields
verdict validity (Sources|WritePropertyTests|RoundTripTests|WriteListTests)
backChannelIsGone backChannelClosed
giveBack recycle ^(?!.*RunSpace)
# The client.
turn nextLoop HearthClient\.swift|Server/Server\.swift|NativeServer\.swift
cancelFromAnywhere cancelFromAnyThread
shutDownFromAnywhere shutDownFromAnyThread
callsInVain liveWaitingCalls
deadWaiting endedWaitingCalls
sweepDeadWaiting removeEndedWaitingCalls
lastTrouble lastConnectionFailure
trouble connectionFailure ConnectionPool
trouble failure JSONMessageReader
impatient failFast
failImpatientCalls endFailFastCalls
impatientCalls failFastCalls
impatientCall failFastCall
spoken noticeCount OutageNotice
startAgreements startSyncReports
carryOut perform ConnectionPool
carryOutActions performActions
isCarryingOut isPerforming
runHere runOnCallingThread
CachePlace CacheLocation
pendingWritePatience pendingWriteTimeout
isHandedBack isUnprocessed ConnectionPool
tell report ConnectionPool
tell complete Connector\.swift|ClientConnection\.swift
judge validate ReadValidation\.swift
Judge Checker CommitTimeReadTests
judge check CommitTimeReadTests
judged checked CommitTimeReadTests
besides excluding IndexDemand
stallsSoughtAt stallsCheckedAt
gateway running (Gateway|Database)Server\.swift
wasTold wasNotified
told notified Tests/.*(CommitTests|ListenSessionTests|ReadingTests|VersionClockTests)
leaseTime turnTime
lease retryTurn LockManagerTests|TransactionTests
circle deadlock PessimisticTests
obstacle notReadyReason Readiness|ServerPages
Verdict Outcome GRPCFramingTests|SwiftCompiler|Documentation/
verdict outcome GRPCFramingTests|SwiftCompiler|Documentation/
awaitsInVain awaitsWithoutReply
waitingInVain waitingWhileUnreachable
judge verify SerializabilityTests
judged verified SerializabilityTests
judged validated UTF8ValidationTests
judgeNames checkNames
homeless orphaned MaintenanceTests
crooked irregular MaintenanceTests
cameFrom predecessors LockManager
lastHeardAt lastReceivedAt
# Storage.
passOn callPreviousHandler MapFaults
askFor adviseWillNeed RunFile
lookForFrames scanForFrames
keepPace throttle EmbeddedWriter
underWay runningMerge MergeThread
isTidy isMerged MergeThread
sparesMax spareFilesMax
# Indexing and queries.
isOfUse hasEntries FieldRules|IndexDerivation|GroupFields|IndexDemand|Indexing
areOfNoUse haveNoEntries
newcomers added (FieldRules|GroupFields|IndexDerivation|IndexMaintenance|Indexing)
leftovers removed (FieldRules|GroupFields|IndexDerivation|IndexMaintenance)
writeAmidChange writeDuringChange
Wish UnmetDemand IndexDemand
wish unmet IndexDemand
wishes unmetDemands IndexDemand
wishesMaximum unmetDemandsMax
Room IndexCounts IndexDemand
room counts IndexDemand
replaceLostOrder sortIfOrderLost
giveSorted emitSorted
isNoted isRecorded QueryExecution
isUseNoted isUseRecorded LackingIndexes
WireWriter ByteBuffer
maximumCount countMax
maximumCharacters charactersMax
scanMinimum scanMin
entryBytesMinimum entryBytesMin
# DocumentCoding.
takeBack reclaim DocumentCoding
takeBackKept reclaimKept
takeBackContainers reclaimContainers
'''

# --- MARKs: "old | new [| regex on the path]" --------------------------------------------------------------------
MARKS = r'''
Figures | Summary in the log | (Gateway|Database)Server
Figures | Statistics
Circles | Deadlocks
Coming in | Arriving requests
Going out | Releasing requests
Care | Maintenance
When | Scheduling
Leases | Turns
Life | Lifetime
The end | Ending
Time and the end | Time limits and ending
Bounds and the end | Bounds and ending
The network, and the end | Network and shutdown
The life of a call | Lifetime of a call
What is done | Entries to put and to remove
What every kind comes down to | Common to all kinds
What every method asks | Checks of every method
What calls need | For calls
What the client said | The client's metadata
What is kept in memory | Tables in memory
What the service sees | Carrier of calls
What nghttp2 asks | Callbacks of nghttp2
What the connection reports | Events of the connection
What the client sends | Messages of the client
What the server sends | Updates from the server
What queries report | Reports of queries
What a C string can hold | Strings of C
The verdict | Validation
The judge | The serializability check
The walk of both | Walking documents and entries
Its structures as our trees | Conversion of protobuf-c's structures
Reads that wait | Waiting reads
Reading much in a row | Consecutive reads
Many snapshots in a row | Consecutive snapshots
Ways of access | Access paths
Frames of honest clients | Valid frames
Ends | Ending
Asking | Sources to poll
Requests in | Incoming requests
Bytes in | Incoming bytes
Bytes out | Outgoing bytes
Frames in | Incoming frames
Documents that are known to be missing | Missing documents
By the ring of recent changes | Validation by recent changes
By reading the range again | Validation by rescanning
Pieces | Helpers | AccessPlanner
Pieces | Lines and numbers | HTTP1Parser
Answering | Replies
Answers | Replies
The answer | Reply
'''

# --- Comments: unique phrases; "old => new [@@ regex on the path]"; line ends may be anything ---------------------
# A phrase may go over a line's end: write " / " there.
PHRASES = r'''
Everything that can be judged without the stored state has been judged when the `WriteList` was read, on the thread => What needs no stored state has been checked when the `WriteList` was read, on the thread
Sendable: `handedOver` and `wakeUp` are made for many threads, the rest is confined => Sendable: `handedOver` and `wakeUp` serve all threads, the rest is confined
Of groups with their own settings others take care. => Other steps handle groups with their own settings.
A declaration for all fields that was lifted gives way to what is common again. => After a declaration for all fields is removed, the common settings apply again.
Bytes from the start of the span that was read to the trouble. => Bytes from the start of the span that was read to the invalid place.
A mode of a later version is a wish that we do not know: the default serves. => A mode of a later version is unknown: the default applies.
Last words are out: say so to the other side, and read on until it closes, since closing with unread input would => All output is sent: shuts it down and reads until the other side closes, since closing with unread input would
The documents changed by recent commits, newest last: what a transaction's ranges are judged by. => The documents changed by recent commits, newest last: they are checked against the ranges of a transaction.
the file can be mended and loaded. => the file can be corrected and loaded.
and the field if one is to blame. => and the field if one is the cause.
its text is not at hand any more. => its text is not available any more.
What the bytes at hand have brought. => The result of the bytes received so far.
Takes a definition in its new state, or with nil lets go of it. => Takes a definition in its new state; nil removes it.
How much a loop does before it looks again at what has come. => How much a loop does before it reads new input.
The tree that explain prints is => The tree that explain prints is
Segment files with nothing of use. => Segment files without records that are needed.
Names are of use only to a client that has some. => Only a client that has documents needs names.
are of no use => are not needed
handedOut = max(handedOut, r)           commit:  assigned = v => issued = max(issued, r)                 commit:  assigned = v
                     h = handedOut =>                      h = issued
A request on its way out of the room. => A request that is no longer parked.
Takes a request out of the room, and continues those that waited for it alone. => Unparks a request, and the requests that waited for it alone.
What this held up is held up by one less. => Removes a blocker; requests without a further blocker continue.
The next request that leaves the room, in the order of their coming. => The next unparked request, in order of arrival.
What time brings: holders who are silent or slow lose what they hold, those who waited too long continue or are / aborted. => Applies the time limits: idle and slow holders lose their locks and turns; requests that waited too long / continue or are aborted.
Empties the room. => Removes all requests.
- Returns: everyone who waited, to be refused. => - Returns: the requests that waited; the caller refuses them.
Nobody holds or waits for anything. => No transaction holds a lock or turn, and no request waits.
Nothing has ended since the last notification. => No lock or turn has ended since the last notification.
A transaction that can only be aborted holds nobody up any longer. => Releases what transactions hold that can only be aborted and that block others.
Looked at again: something new may hold it up. => Checked again: it may have a new blocker.
It has waited long enough and continues. => It has waited for the maximum time and continues.
It is a transaction's commit that is aborted. A retry leases the keys, after the winners have ended. => A transaction's commit, which is aborted. Its retry waits for a turn at the keys, after the winners.
Requests that nothing holds up any more, from `releasedStart` on. => Requests without a blocker, from `releasedStart` on.
Keys of leases that have become free. => Keys whose turn has ended.
Gives turns at what has become free. => Starts the next turns at the keys whose turn has ended.
Ends what a transaction holds, or its waiting for a lease. Unknown numbers are fine. => Releases the locks and turns of a transaction and ends its wait for a turn. Unknown numbers are ignored.
Ends a transaction's leases; it keeps its locks. What the lease held up is looked at again. => Ends a transaction's turn; it keeps its locks. Requests that waited for the turn are checked again.
- start: takes the transactions that begin now, without their turn. => - start: gets the transactions that begin now without a turn.
Who waits for whom at contended documents: commits held up by leases and share locks, reads held up by such / commits, and transactions that wait for their lease. => Waits at contended documents: commits that wait for turns and share locks, reads that wait for such commits, / and transactions that wait for their turn.
waits for   the holder of the lease on x, and everyone with a share lock on x => waits for   the transaction whose turn it is at x, and every holder of a share lock on x
waits for   the holder of the lease on x, and the commits to x that wait already => waits for   the transaction whose turn it is at x, and the commits to x that wait already
waits for   its turn in the queues of its keys (LeaseTable) => waits for   its turn in the queues of its keys (RetryTurns)
other through their commits, and then in a circle: T and U have both read x, and both commit a change of it. The / circle is found when the commit comes that closes it, and the youngest transaction on it is aborted; age is that of => other through their commits, which is a deadlock: T and U have both read x, and both commit a change of it. The / deadlock is found when the commit that closes the cycle arrives. Its youngest transaction is aborted; age is that of
The transactions of a circle of waiting commits, if there is one through this transaction. => The transactions of a cycle of waiting commits through this transaction; nil if there is none.
Aborts transactions until none waits for itself through the commit that has just been parked. => Aborts transactions until no cycle of waits includes the commit that has just been parked.
A lease holder does not wait for other leases: all of its leases were granted at once. => A transaction during its turn waits for no other turn: it has the turn at all of its keys.
Hands a retried transaction => Hands a retried transaction
A transaction that was aborted and tries again takes a lease on the documents it conflicted on before it reads / anything. While it holds the lease, other commits to these documents wait, so it meets no new conflict there; when it / has ended, the next in the queue gets its turn. So of N clients that increment one document all finish, after two / attempts each. => A transaction that was aborted and tries again waits for its turn at the documents it conflicted on before it reads / anything. During its turn other commits to these documents wait, so it has no new conflict there; when it has ended, / the next in the queue gets its turn. So of N clients that increment one document all finish, after two attempts / each.
All leases of a request are granted at once, when it stands first in the queue of each of its keys. Queues are in age => A request gets its turn at all of its keys at once, when it is first in the queue of each. Queues are in age
starves. A holder that falls silent loses its leases after a while, and any holder after a longer while, / however busy it is; correctness never rests on a lease, since every commit is validated all the same. => starves. A turn ends early if its holder is idle, and it has a maximum duration; correctness does not depend on / turns, since every commit is validated.
Keys are hashes: two keys of one hash share a lease, which costs a wait and nothing else. A pure state machine: time / comes in as an argument, what happened goes out as a result. => Keys are hashes: two keys of one hash share a turn, which costs a wait and nothing else. A pure state machine: the / time is an argument, and the effects are results.
Leases and those who wait for them. Belongs to the commit thread. => Turns and the requests that wait for them. Belongs to the commit thread.
What time did to the table. => The requests whose time limit has passed.
Holders who have been silent, or have held their leases, for too long. => Requests whose turn was idle for too long, or has lasted too long.
Requests that waited too long and continue without a lease. => Requests that waited too long and continue without a turn.
- holdMilliseconds: how long a lease lasts at most. => - holdMilliseconds: how long a turn lasts at most.
- Returns: whether the leases are granted at once; otherwise `grantNext` will name the ticket one day. => - Returns: whether the turn starts at once; otherwise a later `grantNext` returns the ticket.
a transaction asks for its leases once => a transaction requests its turn once
Grants what has become possible at the given keys. => Starts the turns that can start at the given keys.
Finds the holders whose time is over and those who have waited too long. The caller releases them. => Finds the turns whose time is over and the requests that have waited too long. The caller releases them.
Holders in the order of their coming; few. => Holders in order of arrival; few.
in the order of their coming => in order of arrival
The lease key of a document's collection. => The key of turns at a document's collection.
Hashes of the keys on which a retry should take a lease. => Hashes of the keys at which a retry waits for its turn.
The key of the lease that a retry takes is that of the document. => The key of the turn that a retry waits for is that of the document.
Remembers an aborted attempt with the keys that a retry should lease. => Remembers an aborted attempt with the keys at which its retry waits for a turn.
Requests that locks and leases hold up: parking them, continuing them, and ending what is held for too long. => Requests that wait for locks and turns: parking them, continuing them, and ending locks and turns that last too long.
Continues the requests whose lock or lease ended: first the commits that it held up, then the next in the queue. => Continues the requests whose blocking lock or turn ended: first the parked commits, then the next in the queue.
held up by a lease or lock? -> parked => blocked by a turn or lock?  -> parked
How long the holder of a lease may be silent before others stop waiting for it, in milliseconds. => How long a transaction may be idle during its turn before others stop waiting for it, in milliseconds.
How long a lease lasts at most, however busy its holder is, in milliseconds: so long a commit may wait for it. => How long a turn lasts at most, in milliseconds: a commit waits no longer for it.
How long a begin may wait for its lease before it continues without one, in milliseconds. => How long a begin may wait for its turn before it continues without one, in milliseconds.
Commits that may wait for a lease to end, and begins that may wait for a lease; further ones continue at once, => Commits that may wait for a turn to end, and begins that may wait for a turn; further ones continue at once,
A transaction that was waiting for its leases: it begins when everything staged before is visible. => A transaction that waited for its turn: it begins when everything staged before is visible.
A retried transaction, to be begun when it has its leases. => A retried transaction, to be begun when its turn comes.
Wall time for versions, elapsed time for leases and expiry: injected, so that tests step it instead of sleeping. => Wall time for versions, elapsed time for turns and expiry: injected, so that tests step it instead of sleeping.
Gives turns at free leases; the transactions whose turn came. => Starts turns; returns the transactions whose turn came.
Lends the document of this name as the last commit left it: for those who need not tell a read time. => Lends the document of this name as of the last commit, for replies without a read time.
Takes a client's word for what it has. A token that is none of ours says that it has everything it was sent. => Notes what the client says it has received. A token of another form means that it has received everything sent.
A policy that does not say otherwise permits it to nobody. => The default permits it to no caller.
Reads a result back; nil when the bytes are none of ours. => Reads a result back; nil if the bytes are not of this format.
Everything is said: what still comes is thrown away until the other side closes. => All output is sent: input is discarded until the other side closes.
The range is too large to be judged; a retry is the answer all the same. => The range is too large to be validated; the transaction is retried.
Takes a document key apart, or nil when it is not one of ours. => Takes a document key apart; nil if it has another form.
Ends the calls that wait when an outage has lasted too long; nil while no call waits in vain. => Ends the calls that wait when an outage has lasted too long; nil while no call waits for a connection.
Everything that was left out and not said yet. => The lines that were left out and not yet reported.
What the owner of a call that is over has to tell and to stop. => What the owner of an ended call has to notify and to stop.
What the commit thread and the checkpoint thread tell each other. => State that the commit thread and the checkpoint thread share.
What came of received bytes. => The result of received bytes.
What a run can tell before it has begun. => What is known of a run before it begins.
What a run can tell at its end. => What is known of a run at its end.
Full for the moment, or for longer: a few tries tell. => Full, perhaps for a short time: a few tries are made.
What cannot be read is none of this version's messages. => A message that cannot be read is of a later version.
What is only in `to` goes back => What is only in `to` goes back
the judge of `WriteApplication` => the reference for `WriteApplication`
the judge of the real executor => the reference for the real executor
Subscribes anew => Subscribes again
The commit is made now or never. => The commit is made now or never.
The next page of documents that the loop's callers => The next page of documents that the loop's callers
A gateway that serves until it is stopped. => A server that runs until it is stopped.
All that can be chosen about a gateway. => The settings of a server.
A running gateway: the store, the event loops, the listeners, and their orderly end. => A running server: the store, the event loops, the listeners, and their shutdown.
Counters of what the gateway did: one set per event loop, written by that loop alone, read by anyone. => Counters of the server's work: one set per event loop, written by that loop alone, read by any thread.
Has the channel settled once at the end of this turn. The caller sees to it that it is not in the list yet. => Settles the channel once at the end of this turn. The caller ensures that it is not in the list yet.
Who writes, and how far they have come. => The writer of a stream, and its position.
The requests that wait are looked at again. => The requests that wait are checked again.
Documents come back => Documents come back
Finds what a mistyped name probably meant. => Finds the name that is closest to a mistyped one.
What people give to `hearth load` that is not JSON lines, and how to make it so. => Inputs of `hearth load` that are not JSON lines, and how to convert them.
What happens to the mutation queue of an engine, which lives until then. => Events of the mutation queue of an engine, which stays alive until then.
The server goes away, and says that it did not work on the call. => The server shuts down and reports that it did not process the call.
Too few descriptors => Too few descriptors
Asks the kernel to read these bytes of the file, which makes reading them faster. => Advises the kernel to read these bytes of the file ahead.
Waits a little for the group before if there are many runs, so that merges catch up long before commits must / stop. => Delays the group if there are many runs, so that merges catch up before commits must stop.
Something is or was kept here or further inside. => Entries of the field or of fields inside it are or were kept.
To what end a document is walked. => The purpose for which a document is walked.
A write while entries are being brought in line: what may be there is removed. => A write while entries are being adapted to new rules: entries that may exist are removed.
Entries that are there for certain, and those that may be. => Entries that certainly exist, and entries that may exist.
Gives a little back, so that a small file can be written. => Releases some bytes, so that a small file can be written.
What every read touches. => Fields that every read uses.
Replies that wait for the sync of their group. => Replies that wait for the sync of their group.
'''

# Words of comments that are swapped everywhere in Swift: "regex => replacement [@@ regex on the path]".
COMMENT_WORDS = r'''
\bjudged\b => checked
\bjudges\b => checks
\bjudging\b => checking
\bjudge\b => check
\bthe lease on\b => the turn at @@ DocumentStore
\blease holder\b => transaction during its turn @@ DocumentStore
\bits lease\b => its turn @@ DocumentStore
\ba lease\b => a turn @@ DocumentStore
\bleases\b => turns @@ DocumentStore
\blease\b => turn @@ DocumentStore
\b[Ll]ease table\b => Retry turns @@ DocumentStore
\bgateways\b => servers
\bgateway\b => server
\bGateway\b => Server
\bWireWriter\b => ByteBuffer
\bThe nudge\b => The wake-up
\ba nudge\b => a wake-up
'''

# Test names and other texts that must follow (whole literals); "old => new".
TEXTS = r'''
A silent lease holder loses its turn, a busy one keeps it => A transaction that is idle during its turn loses it, a busy one keeps it
A lease blocks others' commits to its documents; the holder's own proceed => A turn blocks others' commits to its documents; the holder's own proceed
A holder that vanishes stops nobody for longer than its lease => A holder that vanishes blocks others for its turn at most
Older ones go first, but do not take a lease from its holder => Older ones go first, but do not end another's turn
A silent holder's lease ends, one that was heard of keeps it; waiting ends too => An idle holder's turn ends, a busy one keeps it; waiting ends too
Commits leave in the order of their coming, and a first read waits for those that came before it => Commits continue in order of arrival, and a first read waits for earlier ones
Lease table => Retry turns
a transaction asks for its leases once => a transaction requests its turn once
'''

# --- Machinery ----------------------------------------------------------------------------------------------------
ROOTS = ['Sources', 'Tests', 'Benchmarks', 'Examples', 'Tools']
CHECK = '--check' in sys.argv

def swift_files():
    for root in ROOTS:
        for d, ds, fs in os.walk(root):
            ds[:] = [x for x in ds if not x.startswith('.') and x != 'CFirestoreProto']
            for f in fs:
                if f.endswith('.swift'): yield os.path.join(d, f)
    yield 'Package.swift'

def regions(text):
    """Splits Swift into ('code'|'comment'|'string', text); interpolations are code."""
    out, i, n, start = [], 0, len(text), 0
    def flush(end, kind):
        nonlocal start
        if end > start: out.append((kind, text[start:end]))
        start = end
    def string(i):
        # at an opening quote, perhaps after #s
        nonlocal start
        hashes = 0
        while text[i] == '#': hashes += 1; i += 1
        quote = '"""' if text.startswith('"""', i) else '"'
        close, escape = quote + '#' * hashes, '\\' + '#' * hashes
        i += len(quote)
        while i < n:
            if text.startswith(close, i):
                return i + len(close)
            if text.startswith(escape + '(', i):
                i += len(escape) + 1
                flush(i, 'string')
                depth = 1
                while i < n and depth:
                    c = text[i]
                    if c == '(': depth += 1; i += 1
                    elif c == ')': depth -= 1; i += 1
                    elif c == '"':
                        flush(i, 'code'); i = string(i); flush(i, 'string')
                    else: i += 1
                flush(i - 1, 'code')
                continue
            if text.startswith(escape, i): i += len(escape) + 1; continue
            if quote == '"' and text[i] == '\n': return i
            i += 1
        return i
    while i < n:
        if text.startswith('//', i):
            flush(i, 'code')
            end = text.find('\n', i); end = n if end < 0 else end
            flush(end, 'comment'); i = end
        elif text.startswith('/*', i):
            flush(i, 'code')
            end = text.find('*/', i); end = n if end < 0 else end + 2
            flush(end, 'comment'); i = end
        elif text[i] == '"' or (text[i] == '#' and re.match(r'#+"', text[i:i + 4])):
            flush(i, 'code'); i = string(i); flush(i, 'string')
        else: i += 1
    flush(n, 'code')
    return out

def pairs(table, separator):
    for line in table.strip('\n').split('\n'):
        if not line.strip() or line.startswith('# '): continue
        scope = None
        if ' @@ ' in line: line, scope = line.split(' @@ ')
        old, new = line.split(separator, 1)
        yield old, new, re.compile(scope) if scope else None

NAME_TABLE = []
for line in NAMES.strip().split('\n'):
    if line.startswith('#'): continue
    old, new, *scope = line.split(' ', 2)
    NAME_TABLE.append((old, new, re.compile(scope[0]) if scope else None))

def name_map(path):
    return {old: new for old, new, scope in NAME_TABLE if scope is None or scope.search(path)}

MAXIMUM = re.compile(r'\b([a-z][A-Za-z0-9]*)Maximum\b')
WORD = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')

def rename_code(code, names):
    code = WORD.sub(lambda m: names.get(m.group(0), m.group(0)), code)
    return MAXIMUM.sub(r'\1Max', code)

def rename_comment(text, names):
    # In comments a name is between backquotes, or has an inner capital.
    def word(m):
        w = m.group(0)
        return names.get(w, w) if re.search('[a-z][A-Z]', w) else w
    text = WORD.sub(word, text)
    text = re.sub(r'`[^`\n]+`', lambda m: rename_code(m.group(0), names), text)
    return MAXIMUM.sub(r'\1Max', text)

def phrase_pattern(old):
    parts = [re.escape(part.strip()) for part in old.split(' / ')]
    return re.compile(r'\n([ ]*//+ )'.join(parts)) if len(parts) > 1 else re.compile(parts[0])

PHRASE_TABLE = [(phrase_pattern(o), o, n, s) for o, n, s in pairs(PHRASES, ' => ') if o.strip() != n.strip()]
WORD_TABLE = [(re.compile(o), n, s) for o, n, s in pairs(COMMENT_WORDS, ' => ')]
TEXT_TABLE = [('"' + o + '"', '"' + n + '"') for o, n, _ in pairs(TEXTS, ' => ')]
MARK_TABLE = []
for line in MARKS.strip().split('\n'):
    old, new, *scope = [x.strip() for x in line.split(' | ')]
    MARK_TABLE.append((re.compile(r'(// MARK: (?:- )?)' + re.escape(old) + r'$', re.M), new,
                       re.compile(scope[0]) if scope else None))

def apply_phrase(text, pattern, new):
    def replace(m):
        lines = [x.strip() for x in new.split(' / ')]
        if len(lines) == 1: return lines[0]
        prefix = m.group(1)
        return ('\n' + prefix).join(lines)
    return pattern.sub(replace, text)

def add_basics(text):
    """`ByteBuffer` is declared in Basics: a file that names it imports that module, as visibly as it uses the name."""
    if re.search(r'^\s*(public|package) import Basics$', text, re.M): return text
    code = ''.join(t if k == 'code' else ' ' for k, t in regions(text))
    if not re.search(r'\bByteBuffer\b', code): return text
    visible = re.search(
        r'\b(package|public)\b(?:\s+(?:static|mutating|borrowing|consuming|final|override))*\s+(?:func|init|let|var|typealias)\b[^{}]*\bByteBuffer\b',
        code) or re.search(r'(@inlinable|@usableFromInline)[^{}]*\bByteBuffer\b', code)
    public_extension = re.search(r'^(?:package |public )?extension ByteBuffer\b', code, re.M) and re.search(
        r'\b(package|public)\b', code)
    protocol = re.search(r'^(package|public) protocol[^{]*\{[^}]*\bByteBuffer\b', code, re.M)
    level = 'package' if visible or public_extension or protocol else None
    have = re.search(r'^((?:internal |private |fileprivate )?)import Basics$', text, re.M)
    if have:
        if level and LEVELS: return text.replace(have.group(0), 'package import Basics', 1)
        return text
    line = re.search(r'^((?:@testable )?(?:internal |package |public )?)import \w+$', text, re.M)
    style = 'internal ' if re.search(r'^internal import', text, re.M) else ''
    new = ('package ' if level else style) + 'import Basics\n'
    if line: return text[:line.start()] + new + text[line.start():]
    head = re.match(r'(?://[^/\n][^\n]*\n|//\n)*\n?', text).end()
    return text[:head] + new + '\n' + text[head:]

LEVELS = True

# Files whose package declarations need DocumentModel no longer (the compiler names them; fix-imports.py finds others).
DOWNGRADE = """KeyedDocument StoredRecord AdminField AdminIndex AdminRequests LongRunningOperation FirestoreMessage BloomFilter ListenResponseWriter ResumeToken RunQueryResponseWriter BatchGetDocumentsResponseWriter ListCollectionIds ListDocumentsResponseWriter Administration HealthCheck ServerReflection StatusMessage""".split()

def downgrade(path, text):
    if os.path.basename(path)[:-6] not in DOWNGRADE or '/Tests' in path: return text
    if not path.startswith(('Sources/StoreFormat/', 'Sources/FirestoreMessages/')): return text
    style = 'internal ' if re.search(r'^internal import', text, re.M) else ''
    return re.sub(r'^package import DocumentModel$', style + 'import DocumentModel', text, flags=re.M)

def transform(path, text):
    names = name_map(path)
    for pattern, _, new, scope in PHRASE_TABLE:
        if scope is None or scope.search(path): text = apply_phrase(text, pattern, new)
    for pattern, new, scope in MARK_TABLE:
        if scope is None or scope.search(path): text = pattern.sub(lambda m: m.group(1) + new, text)
    for old, new in TEXT_TABLE: text = text.replace(old, new)
    out = []
    for kind, part in regions(text):
        if kind == 'code': part = rename_code(part, names)
        elif kind == 'comment':
            part = rename_comment(part, names)
            for pattern, new, scope in WORD_TABLE:
                if scope is None or scope.search(path): part = pattern.sub(new, part)
        out.append(part)
    text = ''.join(out)
    if 'typealias ByteBuffer = ByteBuffer' in text:
        text = re.sub(r'(?:^///[^\n]*\n)*^package typealias ByteBuffer = ByteBuffer\n\n?', '', text, flags=re.M)
    return text

def check():
    for path in sorted(set(swift_files())):
        text = open(path).read()
        code = ''.join(t if k == 'code' else ' ' for k, t in regions(text))
        words = set(WORD.findall(code))
        for old, new in name_map(path).items():
            if old in words and new in words: print(f'{path}: {old} -> {new}: both')
        for w in words:
            m = MAXIMUM.fullmatch(w)
            if m and m.group(1) + 'Max' in words: print(f'{path}: {w} -> {m.group(1)}Max: both')
    missing = {o for o, _, _ in NAME_TABLE}
    for path in swift_files():
        missing -= set(WORD.findall(open(path).read()))
    print('not found:', ' '.join(sorted(missing)))
    whole = '\n'.join(open(p).read() for p in sorted(set(swift_files())))
    for pattern, old, _, _ in PHRASE_TABLE:
        if not pattern.search(whole): print('phrase not found:', old[:100])
    for pattern, new, _ in MARK_TABLE:
        if not pattern.search(whole): print('MARK not found:', pattern.pattern)

def main():
    if CHECK: return check()
    changed = []
    for path in sorted(set(swift_files())):
        text = open(path).read()
        new = transform(path, text)
        if new != text and 'WireWriter' in text: new = downgrade(path, add_basics(new))
        if new != text:
            open(path, 'w').write(new)
            changed.append(path)
    # Pages: names between backquotes.
    for d, ds, fs in os.walk('.'):
        ds[:] = [x for x in ds if not x.startswith('.')]
        for f in fs:
            if not f.endswith('.md'): continue
            path = os.path.join(d, f)
            text = open(path).read()
            names = name_map(path) | {o: n for o, n, s in NAME_TABLE if re.search('[a-z][A-Z]', o)}
            new = re.sub(r'`[^`\n]+`', lambda m: m.group(0) if m.group(0).startswith('`hearth') else
                         MAXIMUM.sub(r'\1Max', WORD.sub(lambda w: names.get(w.group(0), w.group(0)), m.group(0))),
                         text)
            for old, to in FILES.items(): new = new.replace(old, to)
            if new != text: open(path, 'w').write(new)
    # Files.
    for root in ROOTS:
        for d, ds, fs in os.walk(root):
            ds[:] = [x for x in ds if not x.startswith('.')]
            for f in fs:
                if f in FILES and not os.path.exists(os.path.join(d, FILES[f])):
                    a, b = os.path.join(d, f), os.path.join(d, FILES[f])
                    if subprocess.run(['git', 'mv', a, b], capture_output=True).returncode: os.rename(a, b)
                    changed = [b if p == a else p for p in changed]
    # Other files that name these (scripts, lists).
    names = '|'.join(map(re.escape, FILES))
    for root in ['Tools', 'Tests', 'Benchmarks']:
        for d, ds, fs in os.walk(root):
            ds[:] = [x for x in ds if not x.startswith('.')]
            for f in fs:
                path = os.path.join(d, f)
                if f.endswith('.swift') or os.path.islink(path) or os.path.getsize(path) > 1 << 20: continue
                try: text = open(path).read()
                except (UnicodeDecodeError, OSError): continue
                new = re.sub(names, lambda m: FILES[m.group(0)], text)
                if new != text: open(path, 'w').write(new)
    manifest = open('Package.swift').read()
    new = manifest.replace('tests("StoreFormatTests", ["DocumentModel"', 'tests("StoreFormatTests", ["Basics", "DocumentModel"')
    if new != manifest: open('Package.swift', 'w').write(new)
    changed = [p for p in changed if os.path.exists(p)]
    print(f'{len(changed)} Swift files changed')
    for i in range(0, len(changed), 200):
        subprocess.run(['swift', 'format', '-i', '--parallel'] + changed[i:i + 200], check=True)

main()
