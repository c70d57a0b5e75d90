"""One CRC for many messages.

CRC-32 is linear: crc(A+B) is crc(A) shifted by the length of B, xor crc(B). So the CRC of all payloads laid end to end
must equal the xor of the written CRCs, each shifted by the bytes that follow it. A fault inside one message is found as
surely as by checking each; independent faults in several messages of a chunk could cancel with chance 2**-32.

Shifting by n bytes is multiplication with a 32x32 bit matrix. Tables hold, for each base-256 digit of n and each byte
of the CRC, the product; they are made on first use.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0xEDB88320

U32 = npt.NDArray[np.uint32]


def combined(crcs: U32, bytes_after: npt.NDArray[np.int64]) -> int:
    """The CRC of payloads laid end to end, from each one's CRC and the number of bytes after it."""
    total = crcs
    rest = bytes_after
    digit = 0
    while rest.size and rest.max() > 0:
        total = _shift(total, (rest & 255).astype(np.intp), digit)
        rest = rest >> 8
        digit += 1
    return int(np.bitwise_xor.reduce(total)) if total.size else 0


def _shift(crcs: U32, counts: npt.NDArray[np.intp], digit: int) -> U32:
    table = _digit_table(digit)
    row = counts << 10
    shifted = table[row + (crcs & 255)]
    shifted ^= table[row + (256 + ((crcs >> np.uint32(8)) & 255))]
    shifted ^= table[row + (512 + ((crcs >> np.uint32(16)) & 255))]
    shifted ^= table[row + (768 + (crcs >> np.uint32(24)))]
    return shifted


@cache
def _digit_table(digit: int) -> U32:
    """For counts 0..255 times 256**digit bytes and each of the four CRC bytes: the shifted value, flat."""
    step = _byte_tables(_operator(digit))
    current = np.arange(256, dtype=np.uint32)[None, :] << (8 * np.arange(4, dtype=np.uint32))[:, None]
    rows = [current]
    for _ in range(255):
        current = _apply(step, current)
        rows.append(current)
    return np.ascontiguousarray(np.stack(rows).reshape(-1), dtype=np.uint32)


@cache
def _operator(digit: int) -> U32:
    """The shift by 256**digit bytes as the images of the 32 unit bits."""
    if digit == 0:
        bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
        for _ in range(8):
            bits = (bits >> np.uint32(1)) ^ np.where(bits & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
        return bits.astype(np.uint32)
    operator = _operator(digit - 1)
    for _ in range(8):
        operator = _apply(_byte_tables(operator), operator)
    return operator


def _byte_tables(operator: U32) -> U32:
    """The operator applied to each value of each of the four bytes: shape 4 x 256."""
    values = np.arange(256, dtype=np.uint32)
    tables = np.zeros((4, 256), dtype=np.uint32)
    for byte in range(4):
        for bit in range(8):
            tables[byte] ^= np.where((values >> np.uint32(bit)) & 1, operator[8 * byte + bit], np.uint32(0))
    return tables


def _apply(tables: U32, values: U32) -> U32:
    result: U32 = (
        tables[0][values & 255]
        ^ tables[1][(values >> np.uint32(8)) & 255]
        ^ tables[2][(values >> np.uint32(16)) & 255]
        ^ tables[3][values >> np.uint32(24)]
    )
    return result
