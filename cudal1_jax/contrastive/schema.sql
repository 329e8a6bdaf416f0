-- Everything a run has learnt, in the order in which it learnt it. Step -1 holds the programs from kernels/.
CREATE TABLE programs (
  sha256 TEXT NOT NULL,            -- of the text with LF line ends
  task   TEXT NOT NULL,
  text   TEXT NOT NULL,
  PRIMARY KEY (task, sha256)
) WITHOUT ROWID;
CREATE TABLE prompts (
  step INTEGER NOT NULL, prompt INTEGER NOT NULL,
  task TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (step, prompt)
) WITHOUT ROWID;
CREATE TABLE lineage (             -- which programs a prompt showed, in the order in which they were chosen
  step INTEGER NOT NULL, prompt INTEGER NOT NULL, place INTEGER NOT NULL, sha256 TEXT NOT NULL,
  PRIMARY KEY (step, prompt, place)
) WITHOUT ROWID;
CREATE TABLE samples (
  step INTEGER NOT NULL, sample INTEGER NOT NULL, prompt INTEGER NOT NULL,
  text TEXT NOT NULL,
  tokens BLOB NOT NULL,            -- little-endian int32
  logprobs BLOB NOT NULL,          -- little-endian float32
  finished INTEGER NOT NULL,
  PRIMARY KEY (step, sample)
) WITHOUT ROWID;
CREATE TABLE verdicts (            -- one row per sample, for ever: a repeated insert changes nothing
  step INTEGER NOT NULL, sample INTEGER NOT NULL,
  task TEXT NOT NULL, sha256 TEXT NOT NULL, name TEXT NOT NULL,
  outcome TEXT NOT NULL,
  json TEXT NOT NULL,
  PRIMARY KEY (step, sample)
) WITHOUT ROWID;
CREATE INDEX verdicts_by_task ON verdicts (task, step, sample);
CREATE TABLE hack_cases (
  task TEXT NOT NULL, sha256 TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (task, sha256)
) WITHOUT ROWID;
CREATE TABLE iterations (          -- metrics of a finished iteration
  step INTEGER PRIMARY KEY,
  metrics TEXT NOT NULL
);
