/*
 * The CRC-32 of two pieces of data put together, from the CRCs of the pieces: the first one is moved
 * over as many zero bytes as the second is long, a linear map over GF(2) that is built from squares.
 */
const polynomial = 0xedb88320

type Matrix = Uint32Array

function times(matrix: Matrix, vector: number): number {
  let sum = 0
  for (let bit = 0, rest = vector; rest !== 0; bit++, rest >>>= 1) {
    if (rest & 1) sum ^= matrix[bit] ?? 0
  }
  return sum >>> 0
}

const square = (matrix: Matrix): Matrix => matrix.map((column) => times(matrix, column))

function oneZeroBit(): Matrix {
  const matrix = new Uint32Array(32)
  matrix[0] = polynomial
  for (let bit = 1; bit < 32; bit++) matrix[bit] = 2 ** (bit - 1)
  return matrix
}

/** `zeroBytes[n]` moves a CRC over 2^n zero bytes. */
const zeroBytes: readonly Matrix[] = (() => {
  const matrices = [square(square(square(oneZeroBit())))]
  for (let n = 1; n < 32; n++) matrices.push(square(matrices[n - 1] ?? oneZeroBit()))
  return matrices
})()

/** CRC-32 of A followed by B, given the CRCs of both and the length of B in bytes (below 4 GiB). */
export function combineCrc32(crcOfA: number, crcOfB: number, lengthOfB: number): number {
  let moved = crcOfA
  for (let n = 0, rest = lengthOfB; rest !== 0; n++, rest >>>= 1) {
    const matrix = zeroBytes[n]
    if (rest & 1 && matrix) moved = times(matrix, moved)
  }
  return (moved ^ crcOfB) >>> 0
}
