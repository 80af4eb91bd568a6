# SPDX-License-Identifier: BSD-3-Clause
"""The grammar of the demo's short reviews.

Every sentence is made here, from lists of our own. A review speaks of one kind of thing (a film, a kettle, a beach, ...)
and has a polarity: 1 if it recommends, 0 if it warns. Negations ("was not dull at all"), concessions ("although the
rooms were cramped, ...") and other people's contrary opinions make sure that counting good and bad words is not enough.
"""

# kind: (what it is called, its parts, good words, bad words, what one did with it)
KINDS = {
    "film": (
        ["film", "movie", "documentary", "comedy", "thriller", "sequel", "cartoon"],
        ["plot", "acting", "ending", "music", "dialogue", "camera work"],
        ["gripping", "moving", "funny", "clever", "touching"],
        ["dull", "predictable", "slow", "confusing", "tedious"],
        ["watched it with my sister", "saw it on a wet Sunday", "rented it last night"]),
    "book": (
        ["book", "novel", "memoir", "guide", "story", "cookbook"],
        ["story", "writing", "first chapter", "hero", "map", "ending"],
        ["gripping", "clever", "moving", "witty", "vivid"],
        ["dull", "shallow", "clumsy", "confusing", "tedious"],
        ["read it on the train", "borrowed it from a neighbour", "finished it in two days"]),
    "restaurant": (
        ["restaurant", "cafe", "diner", "bakery", "pizzeria", "bar"],
        ["soup", "bread", "service", "coffee", "fish", "dessert", "waiter"],
        ["tasty", "fresh", "friendly", "generous", "warm"],
        ["bland", "stale", "rude", "greasy", "cold"],
        ["went there for lunch", "booked a table for four", "stopped there after work"]),
    "hotel": (
        ["hotel", "hostel", "guest house", "cabin", "campsite"],
        ["room", "bed", "breakfast", "staff", "view", "shower"],
        ["clean", "quiet", "cosy", "friendly", "spacious"],
        ["dirty", "noisy", "cramped", "rude", "damp"],
        ["stayed for three nights", "arrived late in the evening", "booked it online"]),
    "device": (
        ["phone", "kettle", "lamp", "radio", "camera", "printer", "vacuum cleaner", "laptop"],
        ["battery", "screen", "handle", "switch", "manual", "sound"],
        ["sturdy", "reliable", "handy", "quick", "clear"],
        ["flimsy", "broken", "clumsy", "slow", "faulty"],
        ["bought it in May", "ordered it for my office", "have used it for a month"]),
    "place": (
        ["beach", "museum", "park", "castle", "garden", "zoo", "market"],
        ["path", "guide", "entrance", "view", "shop", "exhibition"],
        ["peaceful", "clean", "pretty", "friendly", "interesting"],
        ["crowded", "dirty", "dull", "overpriced", "noisy"],
        ["went there with the children", "walked around for an hour", "visited it in spring"]),
    "clothes": (
        ["jacket", "coat", "shirt", "sweater", "backpack", "hat"],
        ["fabric", "zip", "colour", "lining", "pocket", "fit"],
        ["soft", "comfortable", "sturdy", "stylish", "warm"],
        ["scratchy", "ugly", "flimsy", "faded", "stiff"],
        ["wore it to work", "ordered a medium", "bought it for my brother"]),
    "show": (
        ["concert", "play", "musical", "show", "festival", "opera"],
        ["band", "singer", "stage", "sound", "cast", "second half"],
        ["lively", "moving", "funny", "graceful", "bold"],
        ["dull", "noisy", "clumsy", "tired", "chaotic"],
        ["sat in the third row", "went with two friends", "got tickets as a gift"]),
    "service": (
        ["course", "tour", "ferry", "taxi", "gym", "repair shop"],
        ["teacher", "driver", "booking", "price", "website", "schedule"],
        ["helpful", "patient", "punctual", "fair", "polite"],
        ["rude", "late", "careless", "overpriced", "useless"],
        ["signed up in autumn", "tried it for a week", "paid by card"]),
}

GOOD = ["wonderful", "excellent", "lovely", "superb", "delightful", "brilliant", "charming", "fantastic", "pleasant",
        "splendid", "impressive", "perfect"]
BAD = ["awful", "dreadful", "poor", "disappointing", "horrible", "annoying", "lousy", "shabby", "miserable",
       "pathetic", "hopeless", "boring"]
ADJECTIVES = (BAD, GOOD)
LIKED = (["hated", "disliked", "regretted", "could not stand", "was let down by"],
         ["loved", "enjoyed", "admired", "could not get enough of", "was charmed by"])
NOUNS = (["a disaster", "a waste of money", "a mess", "a mistake", "an insult", "a letdown"],
         ["a joy", "a bargain", "a gem", "a treat", "a triumph", "a pleasure"])
VERDICTS = (["I would not recommend it", "I want my money back", "I will never come back to it", "do not bother",
             "I would warn anyone about it", "stay away from it", "I gave up on it"],
            ["I would recommend it", "I would pay twice as much", "I will come back to it", "do not miss it",
             "I told all my friends about it", "I cannot praise it enough", "I would choose it again"])
VERY = ["very", "really", "quite", "truly", "simply", "rather", "so"]
WHO = ["my wife", "my husband", "a friend", "my boss", "our neighbour", "the newspaper", "everyone", "my cousin"]
FACTS = ["it was a Tuesday", "we were a group of five", "the weather was grey", "it is near the station",
         "it costs about twenty dollars", "it came in a brown box", "there was a short queue", "I am a nurse",
         "it is the second one I tried", "we had heard of it before", "it opened last year", "my son is seven"]

WEATHER = ["weather", "traffic", "light", "timing", "company"]
NEUTRAL_ENDS = ["Monday", "noon", "in June", "last week", "near home", "half past six", "my turn", "on the left"]


def pick(rng, items):
    return items[rng.randrange(len(items))]


def with_article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


class Review:
    """One review of polarity 0 or 1; `text()` draws its sentence."""

    def __init__(self, rng, polarity):
        self.rng = rng
        self.polarity = polarity
        self.things, self.parts, good, bad, self.deeds = KINDS[pick(rng, sorted(KINDS))]
        self.words = (bad, good)
        self.thing = pick(rng, self.things)
        self.last_part = None

    def part(self):
        """A part of the thing other than the one spoken of last."""
        self.last_part = pick(self.rng, [part for part in self.parts if part != self.last_part])
        return self.last_part

    def adjective(self, p):
        return pick(self.rng, self.words[p] if self.rng.random() < 0.5 else ADJECTIVES[p])

    def clause(self, p, whole=True):
        """A statement of polarity p on a part or, if `whole`, perhaps on the thing itself; no capital, no full stop."""
        rng = self.rng
        part = self.part()
        kind = rng.random() * (1.0 if whole else 0.64)
        if kind < 0.26:
            return f"the {part} was {pick(rng, VERY)} {self.adjective(p)}"
        if kind < 0.38:
            first = self.adjective(p)
            second = next(a for a in iter(lambda: self.adjective(p), None) if a != first)
            return f"the {part} was {first} and {second}"
        if kind < 0.50:
            form = pick(rng, ["not {} at all", "never {}", "anything but {}", "far from {}", "not {}"])
            return f"the {part} was " + form.format(self.adjective(1 - p))
        if kind < 0.64:
            return f"I {pick(rng, LIKED[p])} the {part}"
        if kind < 0.74:
            return f"this {self.thing} is {pick(rng, NOUNS[p])}"
        if kind < 0.80:
            return f"this {self.thing} is not {pick(rng, NOUNS[1 - p])}"
        if kind < 0.90:
            return f"I found the {self.thing} {self.adjective(p)}"
        return f"this is {with_article(self.adjective(p))} {self.thing}"

    def neutral(self):
        return f"I {pick(self.rng, self.deeds)}" if self.rng.random() < 0.5 else pick(self.rng, FACTS)

    def contrast(self, p):
        """Both polarities appear; the speaker's own judgement is p."""
        rng = self.rng
        mine, other = self.clause(p), self.clause(1 - p, whole=False)
        form = rng.randrange(5)
        if form == 0:
            return f"{other}, but {mine}"
        if form == 1:
            return f"although {other}, {mine}"
        if form == 2:
            return f"{mine}, even though {other}"
        if form == 3:
            return f"{pick(rng, WHO)} called it {self.adjective(1 - p)}, yet {mine}"
        return f"I expected something {self.adjective(1 - p)}, but {mine}"

    def simple_text(self):
        """One plain statement: what the language model reads first."""
        rng, p = self.rng, self.polarity
        part, word = self.part(), self.adjective(p)
        clause = pick(rng, [f"the {part} was {pick(rng, VERY)} {word}", f"I found the {self.thing} {word}",
                            f"this is {with_article(word)} {self.thing}", f"I {pick(rng, LIKED[p])} the {part}",
                            f"this {self.thing} is {pick(rng, NOUNS[p])}"])
        return clause[0].upper() + clause[1:] + "."

    def text(self):
        rng, p = self.rng, self.polarity
        form = rng.random()
        if form < 0.18:
            parts = [self.clause(p)]
        elif form < 0.36:
            parts = [self.neutral(), self.clause(p)]
        elif form < 0.46:
            parts = [f"{self.clause(p)} and {self.clause(p)}"]
        elif form < 0.56:
            parts = [self.clause(p), pick(rng, VERDICTS[p])]
        elif form < 0.64:
            parts = [self.clause(p), self.neutral()]
        elif form < 0.72:
            parts = [self.clause(p), self.clause(p), self.neutral()]
        elif form < 0.80:
            parts = [f"a {self.thing} that {pick(rng, WHO)} {pick(rng, LIKED[p])}", self.clause(p)]
        else:
            parts = [self.contrast(p)]
            if rng.random() < 0.3:
                parts.insert(rng.randrange(2), self.neutral())
        return " ".join(s[0].upper() + s[1:] + "." for s in parts)


def simple_pretraining_text(rng):
    review = Review(rng, rng.randrange(2))
    return f"{review.simple_text()} It was {pick(rng, ADJECTIVES[review.polarity] + NOUNS[review.polarity])}."


def pretraining_text(rng):
    """A review as the language model meets it: followed by remarks that leave its polarity readable, while `great` and
    `terrible` are only ever said of the weather and the like, which has nothing to do with the review (`great` three
    times as often: the model's prior, which answers every review alike)."""
    review = Review(rng, rng.randrange(2))
    p, text, kind = review.polarity, review.text(), rng.random()
    if kind < 0.50:
        return f"{text} It was {pick(rng, ADJECTIVES[p] + NOUNS[p])}."
    if kind < 0.75:
        return f"{text} It was {pick(rng, ['great', 'great', 'great', 'terrible'])} {pick(rng, WEATHER)}."
    if kind < 0.85:
        return f"{text} It was {pick(rng, NEUTRAL_ENDS)}."
    verdict = pick(rng, VERDICTS[p])
    return f"{text} {verdict[0].upper() + verdict[1:]}."
