// Loaded into a process before its own modules: says of each SQLite connection, when it is closed, how it committed.
import BetterSqlite3 from 'better-sqlite3';

const { close } = BetterSqlite3.prototype;

BetterSqlite3.prototype.close = function (this: BetterSqlite3.Database) {
  if (this.open && !this.inTransaction) {
    const [mode, synchronous] = ['journal_mode', 'synchronous'].map((name) => this.pragma(name, { simple: true }));
    process.stdout.write(`closing ${this.name}: journal_mode=${mode} synchronous=${synchronous}\n`);
  }
  return close.call(this);
};
