"""Attributes of some rows, each computed when it is first asked for and from the row numbers alone."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.queries.generator.distance import LONG_TRIP
from bamquery.queries.generator.hashing import Words, bits, key, random_words
from bamquery.queries.generator.layout import Ints, Places
from bamquery.queries.generator.model import (
    JFK,
    LAGUARDIA,
    NEGOTIATED,
    NEWARK,
    RUSH,
    STANDARD,
    WESTCHESTER,
    Flags,
    Model,
)
from bamquery.queries.generator.tariff import AIRPORT, CONGESTION, FARE_RISE_2022, MTA_TAX, Cents

CARD, CASH, NO_CHARGE, DISPUTE = 1, 2, 3, 4
_TIPPED: Final = 0.955  # of card payments


def _share(words: Words, low: int, count: int) -> NDArray[np.float64]:
    """Random bits as numbers from 0 up to but not including 1."""
    return np.multiply(bits(words, low, count), 0.5**count, dtype=np.float64)


class Chunk:
    """Some rows of a model: their numbers in the order of time, and their ranks in the order of distance."""

    def __init__(self, model: Model, rows: Words, ranks: Words) -> None:
        """Nothing is computed yet."""
        self.model = model
        self._tariff = model.tariff
        self._rows = rows
        self._ranks = ranks

    def __len__(self) -> int:
        return len(self._rows)

    def random(self, stream: str) -> Words:
        """64 random bits a row, of a stream of their own."""
        return random_words(key(self.model.seed, stream), self._rows)

    @cached_property
    def places(self) -> Places:
        """Where the rows lie."""
        return self.model.layout.places(self._rows, self.random("time"))

    @property
    def month(self) -> NDArray[np.int32]:
        """The month's file, counted from the first."""
        return self.places.month

    @property
    def in_tail(self) -> Flags:
        """Rows without passenger count, rate code, flag and payment."""
        return self.places.in_tail

    @cached_property
    def hours(self) -> NDArray[np.int32]:
        """The hour of the beginning, counted from the first of all."""
        return self.model.layout.hours(self.places)

    @cached_property
    def pickup_seconds(self) -> Ints:
        """Local time of the beginning, seconds since 1970."""
        return self.model.layout.seconds(self.places, self.hours)

    @cached_property
    def hundredths(self) -> Ints:
        """Distance in hundredths of a mile."""
        return self.model.distances.hundredths(self._rows, self._ranks, self.places)

    @cached_property
    def distance_class(self) -> NDArray[np.int32]:
        """Place among the classes of distances."""
        classes: NDArray[np.int32] = self.model.class_table[np.clip(self.hundredths, 0, LONG_TRIP)]
        return classes

    @cached_property
    def _fare_words(self) -> Words:
        return self.random("fare")

    @cached_property
    def _charge_words(self) -> Words:
        return self.random("charges")

    @cached_property
    def _payment_words(self) -> Words:
        return self.random("payment")

    @cached_property
    def rate_code(self) -> NDArray[np.int32]:
        """TLC's rate code."""
        codes: NDArray[np.int32] = self.model.rate_table[
            (self.distance_class << 12) + bits(self._fare_words, 0, 12)
        ]
        return codes

    @cached_property
    def unusual(self) -> Ints:
        """Places of the rows with another rate code than the standard one."""
        return np.flatnonzero(self.rate_code != STANDARD)

    @cached_property
    def refunds(self) -> Ints:
        """Places of the rows whose amounts are negative."""
        return np.flatnonzero(_share(self._payment_words, 38, 24) < self._tariff.refund[self.month])

    @cached_property
    def vendor(self) -> NDArray[np.int32]:
        """Vendor 1, 2 or (until 2010) 3."""
        share = _share(self._charge_words, 52, 12)
        first, third = self._tariff.vendor_1[self.month], self._tariff.vendor_3[self.month]
        return np.where(share < first, 1, np.where(share >= 1.0 - third, 3, 2)).astype(np.int32)

    @cached_property
    def payment(self) -> NDArray[np.int32]:
        """TLC's payment type."""
        share = _share(self._payment_words, 0, 14)
        month, charges = self.month, self._tariff
        codes = np.where(share < charges.card[month], CARD, CASH).astype(np.int32)
        rest = 1.0 - share
        codes[rest <= charges.no_charge[month] + charges.dispute[month]] = NO_CHARGE
        codes[rest <= charges.dispute[month]] = DISPUTE
        codes[self.refunds] = NO_CHARGE + bits(self._payment_words, 62, 1)[self.refunds]
        return codes

    @cached_property
    def driven_miles(self) -> NDArray[np.float64]:
        """The distance that was paid for: broken distances are replaced by plausible ones."""
        hundredths = self.hundredths
        broken = np.flatnonzero(hundredths > 15_000)
        miles = np.maximum(hundredths, 0) * 0.01
        miles[broken] = 2.0 + (hundredths[broken] % 997) * 0.02
        return miles

    @cached_property
    def fare(self) -> Cents:
        """Fare by meter, flat or negotiated; never negative (refunds are turned at the end)."""
        model, charges, month = self.model, self._tariff, self.month
        miles = self.driven_miles
        # A linear meter with a knee: short trips spend more of their time in traffic.
        meter = 340.0 + 262.0 * miles
        meter += 93.0 * np.minimum(miles, 3.7)
        traffic = model.traffic[bits(self._fare_words, 12, 12)] - 1.0
        traffic /= 1.0 + 0.02 * miles
        traffic += 1.0
        meter *= traffic
        meter *= charges.meter[month]
        base, step = charges.base[month], charges.step[month]
        steps = np.rint((meter - base) / step).astype(np.int64)
        fare: Cents = base + step * np.maximum(steps, 0)
        luck = bits(self._fare_words, 24, 16)
        standing = np.flatnonzero(self.distance_class == 0)
        fare[standing] = np.rint(model.zero_fare[luck[standing] >> 4]).astype(np.int64)
        tail = np.flatnonzero(self.in_tail)  # dispatched trips, priced to the cent
        fare[tail] = np.rint(meter[tail]).astype(np.int64) + bits(self._fare_words, 40, 6)[tail]
        self._set_unusual_fares(fare, meter, luck)
        wild = np.flatnonzero(luck == 0)  # one in 65,536: fat fingers
        fare[wild] = 20_000 + bits(self._fare_words, 46, 16)[wild]
        return fare

    def _set_unusual_fares(self, fare: Cents, meter: NDArray[np.float64], luck: NDArray[np.int32]) -> None:
        rows = self.unusual
        code, month = self.rate_code[rows], self.month[rows]
        flat = rows[code == JFK]
        fare[flat] = self._tariff.jfk[self.month[flat]]
        fare[rows[code == NEWARK]] += self._tariff.newark[month[code == NEWARK]]
        beyond = rows[code == WESTCHESTER]  # double fare outside the city
        fare[beyond] = np.rint(fare[beyond] * 0.027).astype(np.int64) * 50
        agreed = rows[code == NEGOTIATED]
        factor = 0.6 + luck[agreed] * (0.9 / 65_536)
        fare[agreed] = np.rint((meter[agreed] + 2500.0) * factor * 0.01).astype(np.int64) * 100

    @cached_property
    def congestion(self) -> Cents:
        """Congestion surcharge; from February 2019."""
        charged = bits(self._charge_words, 40, 12) < int(0.89 * 4096)
        return np.where(charged & self.model.is_since(CONGESTION)[self.month], 250, 0)

    @cached_property
    def extra(self) -> Cents:
        """Night and rush-hour surcharges; from 2019 vendor 1 adds the congestion surcharge."""
        model, month = self.model, self.month
        kind = model.hour_kinds[model.layout.hour_of_week(self.hours)]
        extra: Cents = model.extra_table[kind, month]
        extra[bits(self._charge_words, 28, 12) >= int(0.97 * 4096)] = 0
        rows = self.unusual
        code = self.rate_code[rows]
        flat = code == JFK
        jfk = np.where(kind[rows] == RUSH, self._tariff.jfk_rush[month[rows]], 0)
        free = flat | (code == NEGOTIATED) | (code == NEWARK)
        extra[rows[free]] = np.where(flat, jfk, 0)[free]
        self._add_airport_surcharge(extra)
        extra[self.in_tail] = 0
        folded = np.flatnonzero((self.congestion > 0) & (self.vendor == 1) & (self.rate_code == STANDARD))
        extra[folded] += 250
        return extra

    def _add_airport_surcharge(self, extra: Cents) -> None:
        """Five dollars from LaGuardia since the fare rise of 2022."""
        since = self.model.is_since(FARE_RISE_2022)
        if since.any():
            likely = (self.distance_class == LAGUARDIA) & since[self.month]
            extra[likely & (bits(self._charge_words, 4, 1) == 1)] += 500

    @cached_property
    def mta_tax(self) -> Cents:
        """Half a dollar, but not on all trips that leave the city."""
        tax = np.full(len(self._rows), 50)
        tax[~self.model.is_since(MTA_TAX)[self.month]] = 0
        luck = bits(self._charge_words, 40, 12)
        rows = self.unusual
        code = self.rate_code[rows]
        leaving = (code == NEGOTIATED) | (code == NEWARK)
        tax[rows[leaving & (luck[rows] < int(0.75 * 4096))]] = 0
        first_year = self.model.is_since(MTA_TAX) & ~self.model.is_since((2011, 1))
        if first_year.any():
            dirty = first_year[self.month]
            tax[dirty & (luck < int(0.01 * 4096))] = 0
            tax[dirty & (luck >= int(0.97 * 4096))] = -100
        return tax

    @cached_property
    def improvement(self) -> Cents:
        """Improvement surcharge; from 2015."""
        surcharge: Cents = self._tariff.improvement[self.month]
        surcharge[bits(self._charge_words, 28, 12) == 0] = 0
        return surcharge

    @cached_property
    def tolls(self) -> Cents:
        """Tolls: likely by distance, mostly the one of the MTA's crossings."""
        likely = self.model.toll_shares[self.distance_class] * self._tariff.toll[self.month]
        rows = np.flatnonzero(_share(self._charge_words, 0, 16) < likely)
        luck = bits(self._charge_words, 16, 12)[rows]
        usual = luck < int(0.86 * 4096)
        tolls = np.zeros(len(self._rows), np.int64)
        other = self.model.other_tolls[(luck * 2399) & 4095]
        tolls[rows] = np.where(usual, self._tariff.main_toll[self.month[rows]], other)
        return tolls

    @cached_property
    def tip(self) -> Cents:
        """Tips by card, a share of the bill."""
        tipped = (self.payment == CARD) & (bits(self._payment_words, 26, 12) < int(_TIPPED * 4096))
        tipped &= ~self.in_tail
        rows = np.flatnonzero(tipped)
        bill = (self.fare + self.extra + self.mta_tax + self.improvement + self.tolls)[rows]
        tip = np.zeros(len(self._rows), np.int64)
        tip[rows] = np.rint(bill * self.model.tips[bits(self._payment_words, 14, 12)[rows]]).astype(np.int64)
        return tip

    @cached_property
    def airport(self) -> Cents:
        """Airport fee; from 2021, for pick-ups at two airports."""
        airports = (self.distance_class >= LAGUARDIA) & (bits(self._charge_words, 8, 4) < 9)
        return np.where(airports & self.model.is_since(AIRPORT)[self.month], 125, 0)

    @cached_property
    def total(self) -> Cents:
        """What the passenger pays."""
        total = self.fare + self.extra
        total += self.mta_tax
        total += self.improvement
        total += self.tolls
        total += self.tip
        # Where vendor 1 folds the congestion surcharge into extra, it is not charged twice.
        total += np.where((self.vendor == 1) & (self.rate_code == STANDARD), 0, self.congestion)
        return total + self.airport

    def negate_refunds(self, cents: Cents) -> Cents:
        """Amounts with those of refunds turned negative."""
        result = cents.copy()
        result[self.refunds] *= -1
        return result
