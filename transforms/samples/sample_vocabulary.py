"""Words and sentences of the sample web: six topics, each with sections, entries, sentence patterns and guides.

Everything here was written for the sample. A topic's sentences draw on its own words, so that a page's most telling
words are those of its topic, and on a few everyday words that all topics share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One thing that pages are about.

    Attributes:
        phrase: the name as it stands in a sentence, with its article where it takes one ("the kestrel", "Saturn").
        also: another name for it, which people search for.
        fact: what sets it apart, as the rest of a sentence that begins with the name.
    """

    phrase: str
    also: str
    fact: str

    @property
    def name(self) -> str:
        """The name without its article."""
        return self.phrase.removeprefix("the ")

    @property
    def slug(self) -> str:
        """The name as it stands in URLs."""
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True)
class Topic:
    """What one topic's pages are made of.

    Attributes:
        name: the topic's name in `topics.parquet`; its own site is the host `<name>.example`.
        site: title of its own site.
        group: name of the group of users who are interested in it.
        words: word lists that the patterns draw from, by slot name.
        patterns: sentences; `{it}` is the entry's phrase, other slots are names of word lists.
        searches: words that people add to a name when they search.
        sections: entries by section name.
        guides: (title, section) of longer articles.
    """

    name: str
    site: str
    group: str
    words: Mapping[str, tuple[str, ...]]
    patterns: tuple[str, ...]
    searches: tuple[str, ...]
    sections: Mapping[str, tuple[Entry, ...]]
    guides: tuple[tuple[str, str], ...]

    @property
    def host(self) -> str:
        """Host of the topic's own site."""
        return f"{self.name}.example"


def _entries(*lines: str) -> tuple[Entry, ...]:
    """Entries from lines of the form `phrase | other name | fact`."""
    return tuple(Entry(*(part.strip() for part in line.split("|"))) for line in lines)


BIRDS = Topic(
    name="birds",
    site="Hedge and Shore",
    group="birdwatchers",
    words={
        "part": ("wing", "beak", "plumage", "tail", "crest", "crown", "breast", "bill"),
        "place": ("hedgerow", "estuary", "reed bed", "sea cliff", "old orchard", "meadow", "marsh", "oak wood"),
        "food": ("voles", "insects", "small fish", "beetles", "seeds", "worms", "berries", "sand eels"),
        "time": ("at dawn", "at dusk", "in early spring", "in late autumn", "during migration", "in hard frost"),
        "nest": ("a scrape on bare ground", "a cup of moss", "a platform of sticks", "a hole in a bank", "a ledge"),
    },
    patterns=(
        "Look for {it} near the {place} {time}.",
        "The {part} gives {it} away long before the song does.",
        "Most pairs of {it} nest in {nest} and raise a single brood of chicks.",
        "When there is a lack of {food}, {it} moves on to another place such as the {place}.",
        "The adult brings {food} to the fledglings until their {part} is fully grown.",
        "Ringing shows that {it} returns to the same nest near the {place} for many seasons.",
        "Birdwatchers with patience and binoculars see {it} feeding on {food} {time}.",
        "The eggs of {it} hatch after three weeks, and both parents guard the nest.",
        "The juvenile has a paler {part} and a clumsier flight than the adult.",
        "In winter the flock leaves the {place} and roosts in the {place2}.",
        "Its call carries across the {place}, and the alarm note is sharper still.",
        "Moult begins after breeding, when worn feathers of the {part} are replaced.",
    ),
    searches=("nest", "eggs", "call", "feeding", "migration", "plumage"),
    sections={
        "raptors": _entries(
            "the kestrel | windhover | hovers over rough grass and drops on voles",
            "the buzzard | mewing hawk | circles on broad wings and mews like a cat",
            "the peregrine | falcon | stoops on pigeons at a speed no other bird reaches",
            "the barn owl | screech owl | quarters the meadow at dusk without a sound",
            "the osprey | fish hawk | plunges feet first for trout",
            "the red kite | glede | steers with a forked tail above the village",
        ),
        "waterbirds": _entries(
            "the grey heron | hernshaw | stands motionless in the shallows and spears fish",
            "the kingfisher | halcyon | flashes blue along the brook and dives from a perch",
            "the mallard | wild duck | dabbles at the surface of any pond",
            "the coot | bald coot | quarrels over its patch of open water",
            "the grebe | dabchick | carries its striped chicks on its back",
            "the mute swan | cob and pen | needs a long run across the water to take off",
        ),
        "songbirds": _entries(
            "the robin | redbreast | sings through the winter and defends its garden",
            "the wren | jenny wren | has a voice far larger than its body",
            "the blackbird | ouzel | turns over leaves for worms and sings from the gable",
            "the nightingale | night singer | sings from deep cover in the dark",
            "the skylark | lark | climbs singing until it is out of sight",
            "the goldfinch | thistle finch | picks the seeds of teasel and thistle",
        ),
        "seabirds": _entries(
            "the gannet | solan goose | folds its wings and dives like an arrow",
            "the puffin | sea parrot | lines up sand eels in a coloured beak",
            "the guillemot | murre | lays one pointed egg on a bare ledge",
            "the arctic tern | sea swallow | travels from pole to pole each year",
            "the fulmar | mallemuck | glides stiff-winged along the cliff",
            "the cormorant | shag | spreads its wings to dry after fishing",
        ),
    },
    guides=(
        ("How to put up a nest box", "songbirds"),
        ("Choosing binoculars for the hide", "raptors"),
        ("A year at the estuary", "waterbirds"),
        ("Reading moult and plumage", "seabirds"),
    ),
)

ASTRONOMY = Topic(
    name="astronomy",
    site="The Night Notebook",
    group="stargazers",
    words={
        "tool": ("telescope", "eyepiece", "finder scope", "camera", "filter", "star chart", "equatorial mount"),
        "sight": ("a faint glow", "a sharp disc", "a ring of dust", "a double point of light", "dark lanes", "a halo"),
        "time": ("around midnight", "before dawn", "at opposition", "in the moonless week", "at culmination"),
        "quantity": ("magnitude", "declination", "orbit", "spectrum", "parallax", "angular diameter", "brightness"),
        "region": ("Milky Way", "ecliptic", "zodiac", "celestial pole", "constellation", "galactic plane"),
    },
    patterns=(
        "Point the {tool} at {it} {time} and wait for steady air.",
        "Through a small telescope, a patient look at {it} reveals {sight}.",
        "The {quantity} of {it} was measured long before photography.",
        "Observers near the {region} find {it} by hopping from star to star.",
        "Light pollution hides {it}, so drive to a dark site and let your eyes adapt.",
        "A long exposure with the {tool} brings out {sight}.",
        "The {quantity} changes slowly, and a careful log of {it} makes it visible.",
        "Astronomers compare the {quantity} of {it} with models of gravity and gas.",
        "On the chart {it} lies close to the {region}.",
        "With averted vision {sight} appears {time}.",
        "The orbit and the {quantity} together tell how far away {it} is.",
        "Sketch {it} at the eyepiece, because drawing teaches the eye to see {sight}.",
    ),
    searches=("telescope", "magnitude", "tonight", "orbit", "photograph", "distance"),
    sections={
        "planets": _entries(
            "Mercury | swift planet | never strays far from the sun in our sky",
            "Venus | evening star | shines brighter than anything but the moon",
            "Mars | red planet | grows and shrinks in the eyepiece over two years",
            "Jupiter | giant planet | shows its four bright moons in any binoculars",
            "Saturn | ringed planet | tilts its rings toward us and away again",
            "Neptune | outer planet | was found by calculation before it was seen",
        ),
        "nebulae": _entries(
            "the Orion Nebula | great nebula | is a nursery of young hot stars",
            "the Crab Nebula | supernova remnant | is what an exploded star left behind",
            "the Ring Nebula | planetary nebula | looks like a smoke ring in Lyra",
            "the Lagoon Nebula | summer nebula | spreads around an open cluster",
            "the Horsehead Nebula | dark nebula | stands out against a red curtain of hydrogen",
            "the Veil Nebula | filament nebula | drifts in threads across Cygnus",
        ),
        "stars": _entries(
            "Sirius | dog star | has a white dwarf for a companion",
            "Betelgeuse | red giant | varies and may end as a supernova",
            "Vega | summer star | served as the zero point of the magnitude scale",
            "Polaris | pole star | hardly moves while the sky turns around it",
            "Algol | demon star | dims every three days when its partner passes before it",
            "Antares | heart of the scorpion | glows red low in the southern sky",
        ),
        "instruments": _entries(
            "the refractor | lens telescope | gives crisp views with a long tube",
            "the reflector | mirror telescope | gathers the most light for the money",
            "the barlow lens | magnifier | doubles the power of an eyepiece",
            "the dobsonian | light bucket | swings a large mirror on a simple base",
            "the spectroscope | prism | spreads starlight into its lines",
            "the planisphere | star wheel | shows which stars are up at any hour",
        ),
    },
    guides=(
        ("Your first night with a telescope", "instruments"),
        ("Keeping an observing log", "planets"),
        ("Photographing faint nebulae", "nebulae"),
        ("Star hopping for beginners", "stars"),
    ),
)

RAILWAYS = Topic(
    name="railways",
    site="Branch Line Companion",
    group="trainspotters",
    words={
        "part": ("boiler", "bogie", "coupling", "buffer", "pantograph", "brake pipe", "wheelset", "axle"),
        "place": ("junction", "terminus", "halt", "goods yard", "engine shed", "platform", "cutting", "branch line"),
        "staff": ("driver", "guard", "signaller", "fireman", "shunter", "ganger"),
        "train": ("freight train", "stopping train", "express", "night mail", "railtour", "ballast train"),
        "time": ("before the timetable change", "on a wet rail", "at line speed", "during the night shift"),
    },
    patterns=(
        "At the {place} {it} is part of every working day.",
        "The {staff} checks the {part} of {it} before the {train} departs.",
        "Wear on the {part} shows {time}, and the workshop records it.",
        "No {train} may pass until the {staff} has secured {it}.",
        "The gauge of the track decides what {it} can be used for.",
        "Old timetables mention {it} at the {place} more than once.",
        "A preserved line keeps {it} in running order for its summer trains.",
        "The {train} waits at the {place} while {it} is inspected.",
        "Steam, diesel and electric traction all depend on {it} in their own way.",
        "The rule book tells the {staff} what to do with {it} {time}.",
        "Sleepers, ballast and rail around the {place} were renewed for the {train}.",
        "Model builders study the {part} of {it} from photographs.",
    ),
    searches=("timetable", "drawing", "history", "preserved", "rules", "model"),
    sections={
        "locomotives": _entries(
            "the tank engine | side tank | carries its water beside the boiler",
            "the express engine | tender locomotive | runs hundreds of miles with a full tender",
            "the diesel shunter | switcher | pushes wagons about the yard all day",
            "the electric locomotive | overhead electric | draws its power through the pantograph",
            "the railcar | multiple unit | needs no engine change at the terminus",
            "the rack engine | cog locomotive | climbs the mountain on a toothed rail",
        ),
        "track": _entries(
            "the turnout | points | guides the wheels from one track to another",
            "the level crossing | grade crossing | stops the road while trains pass",
            "the turntable | engine table | turns a locomotive in its own length",
            "the viaduct | arched bridge | carries the line across the valley on brick arches",
            "the tunnel | bore | keeps the gradient gentle under the hill",
            "the marshalling yard | hump yard | sorts wagons by gravity",
        ),
        "signals": _entries(
            "the semaphore | signal arm | shows stop or clear with a moving arm",
            "the signal box | cabin | holds the levers that lock against one another",
            "the block bell | bell code | announces trains from box to box",
            "the token | single line staff | lets only one train into the section",
            "the colour light | signal lamp | shines through fog and snow",
            "the track circuit | occupancy detector | knows when a wheelset stands on the rails",
        ),
        "rolling-stock": _entries(
            "the hopper wagon | coal hopper | empties itself through the floor",
            "the brake van | caboose | rides at the end of a goods train",
            "the sleeping car | couchette | carries passengers through the night in berths",
            "the dining car | restaurant car | serves soup at line speed",
            "the tank wagon | oil tanker wagon | moves liquids under pressure",
            "the mail van | sorting carriage | picks up letter bags without stopping",
        ),
    },
    guides=(
        ("How a single line is worked", "signals"),
        ("From coal to steam", "locomotives"),
        ("Laying a model turnout", "track"),
        ("Coaches of the night trains", "rolling-stock"),
    ),
)

BAKING = Topic(
    name="baking",
    site="Flour on the Table",
    group="bakers",
    words={
        "flour": ("wheat flour", "rye flour", "wholemeal", "strong flour", "spelt", "semolina"),
        "fat": ("butter", "lard", "olive oil", "cream", "egg yolk"),
        "tool": ("oven", "baking tin", "rolling pin", "dough scraper", "proving basket", "whisk", "mixer"),
        "time": ("overnight", "for twenty minutes", "until golden", "until doubled", "for an hour", "until crisp"),
        "texture": ("crumb", "crust", "batter", "dough", "filling", "glaze", "gluten"),
    },
    patterns=(
        "Weigh the {flour} first, because {it} does not forgive guessing.",
        "The dough for {it} rests {time} before it goes near the {tool}.",
        "The {texture} of {it} should be even, with no raw streak of {flour}.",
        "Rub the {fat} into the {flour} with cold hands.",
        "Bakers judge {it} by its {texture} and its smell.",
        "A clean {tool} and a little steam give {it} the right {texture}.",
        "Yeast works slowly in a cool kitchen, so leave {it} {time}.",
        "Too much {fat} makes {it} heavy, too little makes it dry.",
        "Sugar, salt and {fat} change how the {texture} browns.",
        "Knead until the gluten stretches, then shape {it} and cover it {time}.",
        "The recipe for {it} asks for {flour}, water, salt and patience.",
        "Cooling on a rack keeps the {texture} of {it} crisp.",
    ),
    searches=("recipe", "oven temperature", "dough", "without yeast", "crust", "butter"),
    sections={
        "breads": _entries(
            "sourdough | leavened bread | rises with wild yeast and keeps for a week",
            "rye bread | black bread | is dense, dark and a little sour",
            "the baguette | french stick | is all crust and eaten the same day",
            "focaccia | olive oil bread | is dimpled with the fingers and soaked in oil",
            "brioche | butter bread | holds as much butter as the dough can take",
            "flatbread | griddle bread | needs no oven, only a hot pan",
        ),
        "pastry": _entries(
            "puff pastry | leaf pastry | rises in hundreds of buttery layers",
            "shortcrust | pie dough | crumbles because the flour is coated in fat",
            "choux pastry | profiterole paste | is cooked twice and swells hollow",
            "filo | paper pastry | is stretched until one can read through it",
            "the croissant | breakfast crescent | is rolled from a folded, yeasted dough",
            "the pork pie crust | hot water crust | stands up on its own around the filling",
        ),
        "cakes": _entries(
            "sponge cake | genoise | is raised by nothing but beaten eggs",
            "fruit cake | christmas cake | is fed with brandy and stored for months",
            "gingerbread | spice cake | is sticky with treacle and warm with ginger",
            "meringue | pavlova | dries rather than bakes in a low oven",
            "the madeleine | shell cake | is baked in a scalloped tin",
            "cheesecake | curd cake | sets slowly in a bath of water",
        ),
        "basics": _entries(
            "the starter | leaven | is flour and water that learned to ferment",
            "kneading | working dough | lines up the gluten",
            "proving | fermentation | fills the dough with gas",
            "scoring | slashing | tells the loaf where to open",
            "blind baking | baking blind | cooks a case before it is filled",
            "the baking stone | pizza stone | stores heat and gives it to the loaf",
        ),
    },
    guides=(
        ("A loaf in one day", "breads"),
        ("Why pastry shrinks", "pastry"),
        ("Eggs, air and sponge", "cakes"),
        ("Keeping a starter alive", "basics"),
    ),
)

GEOLOGY = Topic(
    name="geology",
    site="Hammer and Lens",
    group="rockhounds",
    words={
        "layer": ("bed", "vein", "stratum", "outcrop", "fault", "fold", "intrusion"),
        "force": ("pressure", "erosion", "uplift", "glaciation", "weathering", "volcanism", "subsidence"),
        "age": ("Carboniferous", "Jurassic", "Devonian", "Cretaceous", "Permian", "Silurian", "Precambrian"),
        "tool": ("hand lens", "hammer", "compass", "streak plate", "thin section", "geological map"),
        "trait": ("hardness", "cleavage", "lustre", "grain size", "density", "colour", "fracture"),
    },
    patterns=(
        "In the field {it} is recognised by its {trait}, best seen with a {tool}.",
        "The {layer} of {age} sediment lies below {it}.",
        "Slow {force} shaped {it} over millions of years.",
        "Geologists map {it} along the {layer} from quarry to coast.",
        "The {trait} of a specimen separates {it} from its neighbours.",
        "Magma, {force} and time explain most of what {it} shows.",
        "Hold the {tool} close and the {trait} of {it} becomes clear.",
        "The {age} sea left the mud in which {it} is now found.",
        "Where the {layer} was tilted, {force} exposed {it} in the cliff.",
        "A polished section of {it} tells of {force} and of {force2}.",
        "Samples of the {layer} around {it} are taken from fallen blocks only.",
        "The survey's {tool} marks {it} in the {age} rocks of the valley.",
    ),
    searches=("identification", "formation", "hardness", "where to find", "map", "age"),
    sections={
        "minerals": _entries(
            "quartz | rock crystal | scratches glass and has no cleavage",
            "feldspar | moonstone | is the commonest mineral of the crust",
            "mica | isinglass | splits into sheets as thin as paper",
            "calcite | iceland spar | fizzes with acid and doubles what lies beneath",
            "pyrite | fools gold | grows in bright brassy cubes",
            "garnet | carbuncle | forms twelve-sided crystals under pressure",
        ),
        "rocks": _entries(
            "granite | plutonic rock | cooled slowly and shows every crystal",
            "basalt | lava rock | breaks into columns as it cools",
            "limestone | karst rock | dissolves into caves and gorges",
            "sandstone | brownstone | keeps the ripples of old rivers",
            "slate | roofing stone | splits along planes made by pressure",
            "gneiss | banded rock | was folded when it was hot and soft",
        ),
        "landforms": _entries(
            "the moraine | glacial ridge | marks where the ice stopped",
            "the sea stack | rock pillar | stands where the arch fell",
            "the caldera | collapsed crater | is left when the magma chamber empties",
            "the esker | gravel ridge | follows a river that ran under the ice",
            "the gorge | ravine | was cut by a river as the land rose",
            "the drumlin | whaleback hill | points the way the glacier went",
        ),
        "fossils": _entries(
            "the ammonite | snakestone | coils in chambers and dates the beds",
            "the trilobite | stone bug | rolled itself up and shed its shell",
            "the belemnite | thunderbolt stone | is the bullet of a squid-like animal",
            "the crinoid | sea lily | falls apart into star-shaped beads",
            "amber | fossil resin | holds insects from a vanished forest",
            "the brachiopod | lamp shell | has two unequal valves",
        ),
    },
    guides=(
        ("Reading a geological map", "rocks"),
        ("Testing a mineral at home", "minerals"),
        ("A walk along the ice edge", "landforms"),
        ("Cleaning a fossil", "fossils"),
    ),
)

SAILING = Topic(
    name="sailing",
    site="Under Small Canvas",
    group="sailors",
    words={
        "part": ("hull", "keel", "rudder", "mast", "boom", "halyard", "sheet", "cleat", "winch"),
        "weather": ("a fresh breeze", "a steady westerly", "a squall", "light airs", "a rising swell", "fog"),
        "place": ("harbour", "anchorage", "mooring", "lee shore", "tidal race", "open sea", "fairway"),
        "crew": ("skipper", "helm", "crew", "navigator", "watch leader"),
        "course": ("close hauled", "on a broad reach", "before the wind", "on the starboard tack", "hove to"),
    },
    patterns=(
        "In {weather} the {crew} trusts {it} and keeps clear of the {place}.",
        "Sailing {course}, check the {part} and then {it}.",
        "The {crew} practises {it} in the {place} before the first passage.",
        "A worn {part} spoils {it}, so inspect it each spring.",
        "With {weather} from astern {it} wants a firm hand on the {part}.",
        "The pilot book for the {place} says little about {it}.",
        "Ease the {part}, call the {crew} and think about {it} again.",
        "Boats that ride well {course} owe much to {it}.",
        "Rope, canvas and the {part} all take strain when {it} is used in {weather}.",
        "The tide turns at the {place} and {it} decides who gets home first.",
        "Every {crew} has a story in which {it} saved the mast.",
        "Leave the {place} under reduced sail and try {it} {course}.",
    ),
    searches=("how to", "rigging", "heavy weather", "single handed", "rope", "harbour"),
    sections={
        "boats": _entries(
            "the dinghy | open boat | teaches balance faster than any yacht",
            "the sloop | single master | carries one headsail and one mainsail",
            "the ketch | two master | splits its sail area between two masts",
            "the catamaran | twin hull | sails flat and fast but turns slowly",
            "the yawl | mizzen boat | sets a tiny sail behind the rudder post",
            "the cutter | double headsail | sets two headsails on one mast",
        ),
        "sails": _entries(
            "the mainsail | main | drives the boat and balances the helm",
            "the jib | headsail | fills the space before the mast",
            "the spinnaker | kite sail | balloons ahead of the boat downwind",
            "the genoa | overlapping headsail | sweeps past the mast to catch light airs",
            "the trysail | storm sail | replaces the mainsail in a gale",
            "the lugsail | balanced lug | hangs from a yard and reefs in a minute",
        ),
        "knots": _entries(
            "the bowline | rescue loop | makes a loop that never slips",
            "the clove hitch | fender hitch | holds a fender in two turns",
            "the sheet bend | flag bend | joins a thick rope to a thin one",
            "the reef knot | square knot | ties down the folded sail",
            "the stopper knot | figure of eight | keeps the sheet from running out",
            "the rolling hitch | gripping hitch | grips along another rope",
        ),
        "seamanship": _entries(
            "anchoring | ground tackle | starts with enough chain",
            "reefing | shortening sail | is done before one wonders whether to do it",
            "tacking | going about | takes the bow through the wind",
            "gybing | wearing round | takes the stern through the wind",
            "heaving to | lying to | stops the boat with sails set against each other",
            "pilotage | coastal navigation | finds the way in by marks and lights",
        ),
    },
    guides=(
        ("Your first passage by night", "seamanship"),
        ("Four knots for a day sail", "knots"),
        ("Trimming a headsail", "sails"),
        ("Buying an old wooden boat", "boats"),
    ),
)

TOPICS: tuple[Topic, ...] = (ASTRONOMY, BAKING, BIRDS, GEOLOGY, RAILWAYS, SAILING)
"""The topics in the order of their names."""

EVERYDAY: tuple[str, ...] = (
    "There is always more to learn, and asking is never a nuisance.",
    "Write down what you saw on the day, because memory is a poor witness.",
    "The photographs on this page were taken by our readers.",
    "Last month's letters brought corrections, for which we are grateful.",
    "If a link leads nowhere, please tell the editors.",
    "Beginners and old hands disagree about this, as they do about most things.",
    "A friend, a flask of tea and a free afternoon are the best equipment.",
    "This page is kept short on purpose.",
)
"""Sentences of no topic, sprinkled over all pages."""

GOODS: tuple[tuple[str, str], ...] = (
    ("wool-socks", "Wool socks"),
    ("travel-mug", "Travel mug"),
    ("rain-coat", "Rain coat"),
    ("head-torch", "Head torch"),
    ("notebook", "Notebook"),
    ("folding-chair", "Folding chair"),
    ("rucksack", "Rucksack"),
    ("sun-hat", "Sun hat"),
)
"""(slug, name) of what the shop sells; its pages belong to no topic."""

GERMAN_PARAGRAPHS: tuple[str, ...] = (
    "Der Turmfalke ist der häufigste Falke in unserer Gegend und jagt über Wiesen, Äckern und Straßenrändern. "
    "Er rüttelt mit schnellen Flügelschlägen auf der Stelle, bis er eine Maus entdeckt, und stößt dann herab.",
    "Das Weibchen legt vier bis sechs Eier in eine Mauernische, einen alten Krähenhorst oder einen Nistkasten. "
    "Die Jungvögel bleiben etwa vier Wochen im Nest und werden danach noch eine Zeit lang gefüttert.",
    "Im Winter ziehen viele Turmfalken nach Südwesten, doch wo es genug Wühlmäuse gibt, bleiben sie auch bei Schnee. "
    "Wer einen Nistkasten aufhängen möchte, wählt eine ruhige, hohe Stelle mit freiem Anflug.",
)
"""The one page in another language: the kestrel in German."""
