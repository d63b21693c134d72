/** Lets every contestant measure in turn, so many times; whoever comes first may find the machine in another mood. */
export async function inTurn<Result>(
  measured: ReadonlyMap<string, () => Promise<Result>>,
  rounds: number,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>()
  for (const name of measured.keys()) results.set(name, [])
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? [...measured] : [...measured].reverse()
    for (const [name, measure] of order) results.get(name)?.push(await measure())
  }
  return results
}
