"""The world of one seed: cluster, network, clients and one sidecar under a virtual clock, and all that befalls them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from codec.api_keys import ApiKey
from codec.headers import ConsistencyState
from sidecar.core.cluster import HeadSource
from sidecar.core.events import Address, BrokersSeen, ClusterDescribed
from sidecar.core.exchange import Exchange
from sidecar.core.gate import GateSettings
from sidecar.core.ids import OWN, NodeId
from sidecar.core.levels import Policy
from sidecar.core.probing import Pace
from sidecar.core.sidecar import Sidecar
from sidecar.core.states import Complaint
from tests.simulation import invariants
from tests.simulation.brokers import Node, Process
from tests.simulation.clients import Client
from tests.simulation.clock import Clock
from tests.simulation.driver import Driver
from tests.simulation.links import Network, Then, Work
from tests.simulation.metadata_log import CommitHistory, MetadataLog
from tests.simulation.requests import WRITES, Note, Reply, Seen, Wish, draw, note_of, taste
from tests.simulation.story import Story
from tests.simulation.weather import Kind, weather_of

SETTLE_MS = 300.0
NOOP_HEALED_MS = 40.0


@dataclass(slots=True)
class Plan:
    """One client of the application: who it is, and what it still wants."""

    name: str
    client_id: str
    principal: str
    wishes: list[list[Wish]]


class World:
    """See the module.

    Attributes:
        generation: of the metadata log; another one has nothing to do with what was seen before.
        swapped: another log is there, and the sidecar has not noticed yet.
        counts: what happened, for the assertion that everything does happen.
    """

    def __init__(self, seed: int) -> None:
        self.weather = weather = weather_of(seed)
        self.random = Random(f"world {seed}")
        self.state_random = Random(f"states {seed}")
        self.login_random = Random(f"world logins {seed}")
        self.clock = Clock()
        self.story = Story()
        self.counts: Counter[str] = Counter()
        self.log = MetadataLog(self.clock, self.random)
        self.network = Network(
            self.clock, self.random, delay_ms=weather.delay_ms, notice_ms=weather.notice_ms, back_ms=weather.back_ms
        )
        self.nodes: dict[int, Node] = {}
        self.members: list[int] = []
        for node_id in range(1, weather.brokers + 1):
            self._join(node_id)
        self.generation = 0
        self.swapped = False
        self.refused = weather.refused != "never"
        self.cluster_id = "cluster-0"
        self.driver = Driver(self, self._sidecar())
        self.log.on_commit.append(self._committed)
        self._seen: dict[str, Seen] = {}
        self._plans: dict[Client, Plan] = {}
        self._tastes = taste(self.random)
        self._swapped_from = ""
        self._swap_epoch = 0
        self._slow: list[Callable[[], None]] = []
        self._healed = False
        self._noop_ms = weather.noop_ms

    def _sidecar(self) -> Sidecar:
        weather = self.weather
        return Sidecar(
            GateSettings(
                policy=Policy(level=weather.level),
                wait_timeout_ms=weather.wait_timeout_ms,
                effective_grace_ms=weather.effective_grace_ms,
                on_timeout=weather.on_timeout,
                held_requests_max=weather.held_requests_max,
            ),
            source=HeadSource.BROKER_MAX if weather.broker_max else HeadSource.DESCRIBE_QUORUM,
            pace=Pace(
                idle_interval_ms=weather.idle_interval_ms,
                min_interval_ms=weather.min_interval_ms,
                timeout_ms=weather.probe_timeout_ms,
            ),
            sessions_max=weather.sessions_max,
            session_idle_ms=weather.session_idle_ms,
        )

    # The run

    def run(self) -> None:
        """Lets the seed's faults and requests happen, heals, and waits until all is answered.

        Raises:
            Violation: an invariant does not hold.
        """
        try:
            self._start()
            self.clock.run(self.clock.now_ms + self.weather.duration_ms)
            self._heal()
            self._settle()
        except Exception as error:
            error.add_note(f"{self.weather}\n\n{self.story}")
            raise

    def _start(self) -> None:
        weather, random, clock = self.weather, self.random, self.clock
        self.describe()
        if self._noop_ms is not None:
            clock.after(random.uniform(0, self._noop_ms), self._noop)
        for number in range(weather.clients):
            share = draw(random, weather.requests // weather.clients + 1, self._tastes)
            plan = Plan(
                f"client-{number}", f"app-{number % 2}", self._principal(), _bursts(random, share, weather.burst)
            )
            clock.after(random.uniform(0, 60), self._open, plan)
        if self.refused and weather.refused == "until":
            clock.after(weather.duration_ms / 2, self._grant)
        for _ in range(weather.faults):
            clock.after(random.uniform(20, 0.8 * weather.duration_ms), self._fault)

    def _settle(self) -> None:
        clock, weather = self.clock, self.weather
        # Questions that were asked before must be given up, brokers found again, holds ended; then nothing may wait.
        # An idle core looks at the head now and then only, and would not notice another log before that.
        longest_ms = max(weather.probe_timeout_ms, weather.wait_timeout_ms, weather.idle_interval_ms)
        clock.run(clock.now_ms + longest_ms + SETTLE_MS)
        invariants.everything_is_answered(self)
        if not weather.fresh or weather.level.name == "EVENTUAL":
            return
        names = sorted(self._seen)[:4] if weather.scope == "client_id" else ["any"]
        notes = []
        for name in names:
            client = self._connect(Plan(name, name.removeprefix("client_id:"), self._principal(), []))
            assert client is not None
            client.wish([Wish(api_key=ApiKey.METADATA)])
            notes.append(client.expected[0])
        clock.run(clock.now_ms + weather.wait_timeout_ms + SETTLE_MS)
        invariants.every_session_can_read(self, notes)

    def _heal(self) -> None:
        self.story.tell(self.clock.now_ms, 0, "heal", "all faults end")
        self._healed = True
        self.refused = False
        self.network.heal()
        self.log.heal()
        for answer in list(self._slow):
            self._answer_slow(answer)
        for node_id in self.members:
            self.nodes[node_id].heal()
        self.describe()
        if self._noop_ms is None:
            self.clock.after(NOOP_HEALED_MS, self._noop)
        self._noop_ms = NOOP_HEALED_MS

    def _noop(self) -> None:
        if self.log.leader_id is not None:
            self.log.append(lambda _offset: None)
        if self._noop_ms is not None:
            self.clock.after(self._noop_ms, self._noop)

    def _committed(self, offset: int) -> None:
        self.driver.history.note(self.driver.core._seq, offset)
        for node in self.nodes.values():
            node.committed(offset)

    # Clients

    def _open(self, plan: Plan) -> None:
        client = self._connect(plan)
        if client is None:
            self.clock.after(self.random.uniform(5, 30), self._open, plan)
            return
        delay_ms = 0.0
        for burst in plan.wishes:
            self.clock.after(delay_ms, self._wish, client, plan, burst)
            delay_ms += self.random.uniform(0, self.weather.duration_ms * 1.2 / max(len(plan.wishes), 1))
        if self.random.random() < 0.2:
            self.clock.after(self.random.uniform(0, delay_ms + 1), client.leave)

    def _visit(self, node_id: int) -> None:
        """A new client of the application comes in by a broker that was just started again."""
        if not self._healed:
            wishes = draw(self.random, 2, self._tastes)
            plan = Plan("visitor", f"app-{self.random.randint(0, 1)}", self._principal(), [wishes])
            client = self._connect(plan, NodeId(node_id))
            if client is not None:
                self._wish(client, plan, wishes)

    def _connect(self, plan: Plan, node_id: NodeId | None = None) -> Client | None:
        if node_id is None and self.random.random() < 0.7:
            node_id = NodeId(self.random.choice(self.members))
        identity = None if self.weather.principals else OWN
        connection = self.driver.core.open_client(node_id, identity)
        if connection is None and self._healed:
            connection = self.driver.core.open_client(None, identity)
        if connection is None:
            return None
        client = Client(self.driver, plan.name, plan.client_id, plan.principal, connection)
        self.driver.clients[connection] = client
        self._plans[client] = plan
        if self.weather.principals and self.login_random.random() < self.weather.carried:
            self.clock.after(self.login_random.uniform(0, 10), self._log_in, client)
        return client

    def _principal(self) -> str:
        """Whom a new client is to the brokers."""
        return f"user-{self.login_random.randrange(self.weather.principals)}" if self.weather.principals else "sidecar"

    def _log_in(self, client: Client) -> None:
        """A broker has accepted a client; it may log in again later."""
        if client.closed:
            return
        self.driver.logged_in(client, fresh=self.login_random.random() < 0.3)
        if self.login_random.random() < self.weather.relogins:
            self.clock.after(self.login_random.uniform(20, 200), self._log_in_again, client)

    def _log_in_again(self, client: Client) -> None:
        if not client.closed:
            self.counts["logs in again"] += 1
            self.driver.logs_in(client)
            self.clock.after(self.login_random.uniform(0, 20), self._log_in, client)

    def _wish(self, client: Client, plan: Plan, burst: list[Wish]) -> None:
        if not client.closed and not self._healed:
            plan.wishes.remove(burst)
            client.wish(burst)

    def client_left(self, client: Client) -> None:
        """Its connection has ended; the application may open another one for what it still wants."""
        plan = self._plans.pop(client)
        if plan.wishes and not self._healed:
            self.clock.after(self.random.uniform(1, 60), self._open, plan)

    # What sessions have seen

    def see(self, session_name: str, note: Note, seen: Seen) -> None:
        """An answer showed something to a session."""
        if note.generation == self.generation:
            self._seen[session_name] = self.seen(session_name).merged(seen)

    def forget_effects(self) -> None:
        """A session that the sidecar does not know any more is promised what it saw, not that it acts."""
        for name, seen in self._seen.items():
            if seen.effective >= 0 and name not in self.driver.core.sessions._sessions:
                self._seen[name] = Seen(seen.visible)

    def seen(self, session_name: str) -> Seen:
        """What a session has seen so far, on the present log."""
        return self._seen.get(session_name, Seen())

    # What brokers do

    def look(self, process: Process, then: Then) -> None:
        """Answers with what the process shows now."""
        then(self._reply(process))

    def _reply(
        self, process: Process, *, offset: int = -1, creates: bool = False, complaint: Complaint | None = None
    ) -> Reply:
        state = None
        if self.weather.carries_state:
            token = process.visible if self.weather.own_token else max(process.visible, offset)
            state = ConsistencyState(cluster_id=self.cluster_id, consistency_token=token)
        return Reply(
            process=process,
            visible=process.visible,
            effective=process.effective,
            offset=offset,
            creates=creates,
            state=state,
            complaint=complaint,
        )

    def _complaint(self, exchange: Exchange, process: Process) -> Complaint | None:
        """What the broker has against the state in a request's header: the client's own, or the sidecar's."""
        note = note_of(exchange)
        state = exchange.stamp or note.claim
        if state is None or not self.weather.carries_state:
            return None
        if state.cluster_id != self.cluster_id:
            return Complaint.FOREIGN
        has = process.effective if self.weather.fussy else process.visible
        return Complaint.STALE if state.consistency_token > has else None

    def work_of(self, exchange: Exchange, *, pure: bool) -> Work:
        """What a broker does for this request."""
        wish = note_of(exchange).wish

        def work(process: Process, then: Then) -> None:
            def written(offset: int) -> None:
                then(self._reply(process, offset=offset))

            complaint = self._complaint(exchange, process)
            if complaint is not None:
                then(self._reply(process, complaint=complaint))
            elif wish.api_key in WRITES:
                (self.log.after_all if wish.fails else self.log.append)(written)
            elif wish.api_key is ApiKey.DESCRIBE_QUORUM:
                self.log.describe_quorum(process.node_id, lambda answer: written(answer.high_watermark - 1))
            elif wish.missing and not pure:
                self.log.append(lambda _offset: None)
                self.look(process, then)
            else:
                then(self._reply(process, creates=wish.missing and pure))

        return work

    def describe_quorum(self, process: Process, then: Then) -> None:
        """Relays DescribeQuorum to a controller, or refuses it."""
        if self.refused:
            then(None)
            return
        delay_ms = 0.0 if self._healed else self.random.uniform(0, self.weather.head_delay_ms)
        if self.random.random() < 0.5:
            delay_ms = min(delay_ms, 5.0)
        if self.random.random() < 0.5:
            # The controller looks late.
            self._answer_later(delay_ms, partial(self.log.describe_quorum, process.node_id, then))
        else:
            # What it saw early comes back late.
            self.log.describe_quorum(
                process.node_id, lambda answer: self._answer_later(delay_ms, partial(then, answer))
            )

    def _answer_later(self, delay_ms: float, answer: Callable[[], None]) -> None:
        self._slow.append(answer)
        self.clock.after(0.0 if self._healed else delay_ms, self._answer_slow, answer)

    def _answer_slow(self, answer: Callable[[], None]) -> None:
        if answer in self._slow:
            self._slow.remove(answer)
            answer()

    # Faults

    def _fault(self) -> None:
        if self._healed:
            return
        faults: dict[Kind, list[Callable[[], None]]] = {
            Kind.RESTARTS: [self._kill, self._kill, self._pause, self._restart_sidecar],
            Kind.ELECTIONS: [self._cut, self._cut, self._resign, self._resign, self._kill],
            Kind.NETWORK: [self._break, self._break, self._break, self._hang, self._resign],
            Kind.PRESSURE: [self._pause, self._kill, self._break, self._resign],
            Kind.MEMBERSHIP: [self._leave, self._come, self._move, self._swap, self._restart_sidecar],
            Kind.DEGRADED: [self._kill, self._break, self._pause, self._break],
        }
        fault = self.random.choice(faults[self.weather.kind])
        self.story.tell(self.clock.now_ms, 0, "fault", fault.__name__.lstrip("_"))
        self.counts[f"fault {fault.__name__.lstrip('_')}"] += 1
        fault()

    def _any(self) -> Node:
        return self.nodes[self.random.choice(self.members)]

    def _kill(self) -> None:
        node = self._any()
        self._die(node)
        self.clock.after(self.random.uniform(1, self.random.choice((10, 80))), self._start_again, node)

    def _die(self, node: Node) -> None:
        self.story.tell(self.clock.now_ms, 0, "fault", f"broker {node.node_id} dies")
        # A machine that loses power says nothing: its connections are missed one by one, when something is due on them.
        silent = self.random.random() < 0.5
        node.die(lambda link: link.end(reset=False, notice_ms=self.random.uniform(20, 400) if silent else None))

    def _start_again(self, node: Node) -> None:
        if node.process is None and node.node_id in self.members:
            behind = self.random.choice((3, 15, 30))
            node.start(max(self.log.committed - self.random.randint(1, behind), 0), self.random.uniform(0, 400))
            self.clock.after(self.random.uniform(0, 30), self._visit, node.node_id)
            self.story.tell(self.clock.now_ms, 0, "fault", f"broker {node.node_id} starts")

    def _pause(self) -> None:
        self._any().pause(self.random.uniform(50, 400))

    def _cut(self) -> None:
        self.log.cut(self.members)

    def _resign(self) -> None:
        self.log.resign()

    def _hang(self) -> None:
        self.log.hang(self.random.uniform(50, 700))

    def _break(self) -> None:
        process = self._any().process
        open_links = [link for link in process.links if not link.closed] if process is not None else []
        # One that carries routed reads, if there is any: those are asked again. Else one with a request under way.
        channels = self.driver.channels
        asked = {channel.channel_id for client in self.driver.clients.values() for channel in client.routed.values()}
        routed = [channel.link for channel in channels.values() if channel.channel_id in asked]
        busy = routed or [link for link in open_links if link.carries] or open_links
        if busy:
            self.random.choice(busy).end(reset=True)

    def _restart_sidecar(self) -> None:
        self.driver.end()
        self.swapped = False
        self._seen = {name: seen for name, seen in self._seen.items() if not name.startswith("connection:")}
        self.driver = Driver(self, self._sidecar())
        self.forget_effects()
        self.describe()

    # Membership

    def _join(self, node_id: int) -> None:
        weather = self.weather
        self.nodes[node_id] = Node(
            node_id, self.clock, self.random, self.log, lag=weather.lag_ms, apply=weather.apply_ms
        )
        self.members.append(node_id)

    def describe(self) -> None:
        """Discovery asks who belongs to the cluster."""
        driver, cluster_id = self.driver, self.cluster_id
        if not driver.dead:
            addresses = tuple(self._address(node_id) for node_id in sorted(self.members))
            driver.handle(ClusterDescribed(cluster_id, addresses[0].node_id, addresses))
            if driver.core.cluster.cluster_id == cluster_id != self._swapped_from:
                self.swapped = False

    def noticed(self) -> None:
        """Looks whether the sidecar has seen that another log has taken the place of the former one."""
        head = self.driver.core.cluster.view.head
        if self.cluster_id == self._swapped_from and head is not None and head.leader_epoch >= self._swap_epoch:
            self.swapped = False

    def _grant(self) -> None:
        self.refused = False

    def rediscover(self) -> None:
        """Discovery is asked to look at once."""
        self.counts["rediscovered"] += 1
        self.clock.after(self.state_random.uniform(1, 10), self.describe)

    def claimed(self, wish: Wish) -> Wish:
        """The same read, perhaps of a client that implements the proposal itself and asks for a token."""
        random = self.state_random
        if self._healed or wish.api_key is not ApiKey.METADATA or random.random() < 0.7:
            return wish
        self.counts["claims"] += 1
        return replace(wish, claims=random.choice((-20, -3, 0, 0, 1, 2, 1000)), foreign=random.random() < 0.1)

    def _describe_later(self) -> None:
        self.clock.after(self.random.uniform(5, 150), self.describe)

    def _address(self, node_id: int) -> Address:
        return Address(NodeId(node_id), "broker.example", self.nodes[node_id].address)

    def _leave(self) -> None:
        if len(self.members) > 1:
            node = self._any()
            self.members.remove(node.node_id)
            self._die(node)
            self._describe_later()

    def _come(self) -> None:
        gone = [node_id for node_id in self.nodes if node_id not in self.members]
        if gone:
            self.members.append(gone[0])
            self._start_again(self.nodes[gone[0]])
        else:
            self._join(len(self.nodes) + 1)
        if self.random.random() < 0.5:
            self.driver.handle(BrokersSeen((self._address(self.members[-1]),)))
        else:
            self._describe_later()

    def _move(self) -> None:
        node = self._any()
        self._die(node)
        node.address += 1
        self.clock.after(self.random.uniform(1, 40), self._start_again, node)
        self._describe_later()

    def _swap(self) -> None:
        """Another cluster stands behind the same names, or this one's log was restored from a backup."""
        if self.swapped:
            return
        for node_id in self.members:
            self._die(self.nodes[node_id])
        self.generation += 1
        self.swapped = True
        self._swapped_from = self.cluster_id
        self._seen.clear()
        if self.random.random() < 0.5:
            self.cluster_id = f"cluster-{self.generation}"
            epoch = self.random.randint(0, 20)
        else:
            epoch = self.log.epoch + self.random.randint(1, 3)
        self._swap_epoch = epoch
        self.log.replace(self.random.randint(0, 8), epoch)
        self.driver.history = CommitHistory(self.log.committed)
        for node_id in self.members:
            self._start_again(self.nodes[node_id])
        self._describe_later()


def _bursts(random: Random, wishes: list[Wish], burst: float) -> list[list[Wish]]:
    bursts: list[list[Wish]] = [[]]
    for wish in wishes:
        if bursts[-1] and random.random() > burst:
            bursts.append([])
        bursts[-1].append(wish)
    return bursts
