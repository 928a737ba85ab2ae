import { Database } from 'bun:sqlite'

/** Counts, by table, the rows of a database that are not, or are not the same, in the copy that the log makes of it. */
export function countUnshipped(databasePath: string, copyPath: string): Record<string, number> {
  const database = new Database(databasePath)
  try {
    database.run('ATTACH ? AS copy', [copyPath])
    const counted = tablesOf(database).map((name): [string, number] => {
      const query = `SELECT count(*) FROM (SELECT * FROM main."${name}" EXCEPT SELECT * FROM copy."${name}")`
      return [name, Number(database.query(query).values()[0]?.[0] ?? 0)]
    })
    return Object.fromEntries(counted.filter(([, count]) => count > 0))
  } finally {
    database.close()
  }
}

/** Tables that both have, without those that SQLite keeps for itself or for a search index. */
function tablesOf(database: Database): string[] {
  const query = `SELECT name FROM main.sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
    AND name NOT LIKE 'sqlite_%' AND name IN (SELECT name FROM copy.sqlite_schema)
    AND NOT EXISTS (SELECT 1 FROM main.sqlite_schema AS index_table
      WHERE index_table.sql LIKE 'CREATE VIRTUAL%' AND main.sqlite_schema.name LIKE index_table.name || '\\_%' ESCAPE '\\')`
  return database.query(query).values().flat().map(String)
}
