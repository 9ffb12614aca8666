#!/usr/bin/env python3
"""A large cluster on paper: 100 servers, 1,000 stores, 10,000,000 listeners. What is needed of each resource, and how much of it there is.

The constants are measured (docs/performance.md, docs/sizing.md, docs/scale.md, Tools/bench cluster), or assumed where a comment says it. Designs are
compared: a process for each store, that of today with one database and with ten, stores on some servers only, and leases of servers instead of stores. A small simulation places stores, loses servers, and lets their listeners come
to other servers. Prints tables in Markdown. Needs nothing but Python.

usage: Benchmarks/cluster_study.py
"""

import heapq
import random

SERVERS, STORES, LISTENERS = 100, 1_000, 10_000_000
CORES, MEMORY, NETWORK = 16, 64e9, 10e9 / 8  # of one server: cores, bytes, bytes/s
COMMITS = 100_000  # commits/s of all stores together
SNAPSHOTS_PER_COMMIT = 10  # listeners that a commit concerns
RECORD = 562  # bytes of a commit of one document in the log

# Measured, on two cores.
LEADER_COMMIT = 25e-6  # processor time of a commit at its leader, s
FOLLOWER_APPLY = 25e-6  # assumed: at a follower it is not more
SNAPSHOT = 25e-6  # of a snapshot of a listener with a connection each
LISTENER_MEMORY = 4.6e3  # bytes of an idle listener with a connection, native or web
RESUME = 60e-6  # assumed: of a listener that comes with a token
PROCESS_MEMORY = 38e6  # of a process with a store without load
STORE_MEMORY = 3e6  # of a further empty store in a process
APPEND = 0.37e-3  # s, one at a time
DATABASE_COMMITS = 23_000  # durable statements/s of a PostgreSQL on two cores with many sessions
DATABASE_READ = 35e-6  # assumed: processor time of a look at the log that finds nothing, s
LEASE_READ = 1e-6  # assumed: of the row of a lease that is read with many others, s
ROW_WRITE = 10e-6  # assumed: of a row of hearth.servers that is written with many others, s
DATABASE_CORES = 16
DATABASE_SESSIONS = 1_000  # assumed: that a PostgreSQL serves well


class Design:
    def __init__(self, name, replicas, polls, renewals, sessions, databases, announcements=None, memory=STORE_MEMORY):
        self.name, self.replicas = name, replicas
        self.polls, self.renewals, self.sessions, self.databases = polls, renewals, sessions, databases
        # Statements that announce servers, every two seconds: one for each server and database.
        self.announcements = SERVERS * databases / 2 if announcements is None else announcements
        self.memory = memory

    def cores_for_looks(self):
        """Looks at logs, rows of leases twice a second, and rows of servers every two seconds."""
        rows = STORES * self.replicas
        return self.polls * DATABASE_READ + rows * 2 * LEASE_READ + rows / 2 * ROW_WRITE


DESIGNS = [
    # Each server has each store, with three sessions, a renewal twice a second, and 100 looks a second.
    Design("a process a store", SERVERS, STORES * (SERVERS - 1) * 100, STORES * 2, STORES * SERVERS * 3, 1,
           STORES * SERVERS / 2, PROCESS_MEMORY),
    # Groups come on the stream of the leader. A leader has two sessions for a store; a server has four for a database.
    Design("today", SERVERS, 0, STORES * 2, STORES * 2 + SERVERS * 4, 1),
    Design("today, ten databases", SERVERS, 0, STORES * 2, STORES * 2 + SERVERS * 4 * 10, 10),
    # A store is on three servers.
    Design("three servers a store", 3, 0, STORES * 2, STORES * 2 + SERVERS * 4 * 10, 10),
    # One lease a server, which its stores name by its epoch; stores that are led share sessions too.
    Design("and leases of servers", 3, 0, SERVERS * 2, SERVERS * 4 * 10, 10),
]


def needs(design):
    """What a design needs: the name of the resource, how much, and of how much."""
    members = design.replicas / SERVERS * STORES  # of one server
    applied = COMMITS * (design.replicas - 1) / SERVERS  # commits/s that one server applies
    appends = min(COMMITS, STORES / APPEND)
    processor = COMMITS / SERVERS * LEADER_COMMIT + applied * FOLLOWER_APPLY
    snapshots = COMMITS * SNAPSHOTS_PER_COMMIT / SERVERS * SNAPSHOT
    per_database = 1 / design.databases
    return [
        ("sessions of a database", design.sessions * per_database, DATABASE_SESSIONS),
        ("durable statements/s of a database", (appends + design.renewals + design.announcements) * per_database,
         DATABASE_COMMITS * DATABASE_CORES / 2),
        ("cores of a database for looks", design.cores_for_looks() * per_database, DATABASE_CORES),
        ("cores of a server for commits", processor, CORES),
        ("cores of a server for snapshots", snapshots, CORES),
        ("memory of a server for stores, GB", members * design.memory / 1e9, MEMORY / 1e9),
        ("memory of a server for listeners, GB", LISTENERS / SERVERS * LISTENER_MEMORY / 1e9, MEMORY / 1e9),
        ("MB/s that a server sends to followers",
         COMMITS / SERVERS * RECORD * (design.replicas - 1) / 1e6, NETWORK / 1e6),
    ]


def print_needs():
    tables = [needs(design) for design in DESIGNS]
    print("| resource | " + " | ".join(design.name for design in DESIGNS) + " |")
    print("|---|" + "---|" * len(DESIGNS))
    for rows in zip(*tables):
        cells = [f"{need:,.4g} of {have:,.4g} ({need / have:.0%})" for _, need, have in rows]
        print(f"| {rows[0][0]} | " + " | ".join(cells) + " |")
    for design, table in zip(DESIGNS, tables):
        name, need, have = max(table, key=lambda row: row[1] / row[2])
        print(f"\nFirst bottleneck of \"{design.name}\": {name}, at {need / have:.0%} of what there is.")


def placed(rates, choose):
    """The load of each server when stores are placed one after the other, three servers each."""
    loads = [0.0] * SERVERS
    for rate in rates:
        for server in choose(loads):
            loads[server] += rate
    return loads


def imbalance(loads):
    return max(loads) / (sum(loads) / len(loads))


def print_placement(random_numbers):
    """Stores differ: the rate of the n-th is proportional to 1/n^0.8, and they come in a random order."""
    rates = [1 / (n + 1) ** 0.8 for n in range(STORES)]
    random_numbers.shuffle(rates)
    servers = range(SERVERS)
    any_three = lambda loads: random_numbers.sample(servers, 3)
    fewest = {}

    def fewest_stores(_):
        chosen = sorted(servers, key=lambda server: (fewest.get(server, 0), random_numbers.random()))[:3]
        for server in chosen:
            fewest[server] = fewest.get(server, 0) + 1
        return chosen

    least_loaded = lambda loads: heapq.nsmallest(3, servers, key=lambda server: loads[server])
    print("\n| three servers for a store | the most loaded server, of the mean |\n|---|---|")
    for name, choose in [("at random", any_three), ("those with the fewest stores", fewest_stores),
                         ("those with the least load", least_loaded)]:
        print(f"| {name} | {imbalance(placed(rates, choose)):.2f} |")


def print_loss(random_numbers):
    """A server is lost, and its listeners come to the others of their stores, within a second (clients wait at random)."""
    print("\n| the 100,000 listeners of a lost server come to | the last has its snapshot after |\n|---|---|")
    lost = LISTENERS // SERVERS
    for name, targets in [("2 servers: all are of one store", 2), ("60 servers: they are of 30 stores", 60), ("all servers", SERVERS - 1)]:
        busy = [[0.0] * CORES for _ in range(targets)]
        last = 0.0
        for arrival in sorted(random_numbers.random() for _ in range(lost)):
            cores = busy[random_numbers.randrange(targets)]
            begin = max(arrival, cores[0])
            heapq.heapreplace(cores, begin + RESUME)
            last = max(last, begin + RESUME)
        print(f"| {name} | {last:.2f} s |")


def print_fan_out():
    """One commit that all listeners see: of one store, on its servers alone, or with further servers that only follow."""
    print("\n| all listeners listen to one document, on | a commit reaches the last after |\n|---|---|")
    for name, count in [("3 servers", 3), ("30 servers", 30), ("all servers", SERVERS)]:
        print(f"| {name} | {LISTENERS * SNAPSHOT / (count * CORES):.2f} s |")


if __name__ == "__main__":
    print_needs()
    numbers = random.Random(29)
    print_placement(numbers)
    print_loss(numbers)
    print_fan_out()
