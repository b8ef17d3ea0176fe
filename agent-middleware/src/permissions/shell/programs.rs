//! Table of known programs, with the arguments that an allow rule covers implicitly: options that
//! do not add writing, sending, deleting or running anything, and operands that do not either.
//!
//! An entry describes a program, or one of its sub-commands. A sub-command without an entry, next
//! to others with one, is covered only by all of its words. An option followed by `=` has a value,
//! which may be the next word; one without may have a value after its own `=`. `-#` is a number
//! (`-5`), `*` is any option.
//!
//! An argument with a variable or the output of a command is never covered for a program that sends
//! data, or that has no entry: the shell would put a secret in its place.

use self::Operands::{Any, AtMost, Beginning, Local, Names};

/// A program, or a sub-command of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) operands: Operands,
    pub(super) options: &'static str,
}

/// Operands that a rule covers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operands {
    Any,
    /// At most this many.
    AtMost(usize),
    /// Those with one of these prefixes.
    Beginning(&'static [&'static str]),
    /// Paths of this machine: without the colon that makes an address of them.
    Local,
    /// Plain names below the directory without special characters: neither addresses nor `+main`,
    /// `:main`.
    Names,
}

const WEB: Operands = Beginning(&["https://", "http://"]);

const TEST: &str = "-G -L -N -O -S -a -b -c -d -e -ef -eq -f -g -ge -gt -h -k -le -lt -n -ne -nt -o -ot -p -r -s -t -u \
    -w -x -z";

const SUMS: &str = "-b -c -t -w -z --binary --check --ignore-missing --quiet --status --strict --tag --text --warn";

const GREP: &str = "-A= -B= -C= -D= -E -F -G -H -I -L -P -R -T -U -V -Z -a -b -c -d= -e= -f= -h -i -l -m= -n -o -q -r \
    -s -v -w -x -y -z -# --after-context= --basic-regexp --before-context= --binary --binary-files= --color --colour \
    --context= --count --dereference-recursive --exclude= --exclude-dir= --extended-regexp --files-with-matches \
    --files-without-match --fixed-strings --ignore-case --include= --initial-tab --invert-match --line-number \
    --line-regexp --max-count= --no-filename --no-ignore-case --no-messages --null --null-data --only-matching \
    --perl-regexp --quiet --recursive --regexp= --text --with-filename --word-regexp";

const GIT_LOG: &str = "-# -B -C -D -E -F -G= -L= -M -P -R -S= -U= -W -a -b -c -g -i -l= -m -n= -p -q -r -s -t -u -w -z \
    --abbrev --abbrev-commit --after= --all --all-match --ancestry-path --author= --author-date-order --before= \
    --binary --boundary --branches --cached --cc --check --cherry --cherry-mark --cherry-pick --color --color-moved \
    --color-words --committer= --compact-summary --count --cumulative --date= --date-order --decorate --decorate-refs= \
    --diff-algorithm= --diff-filter= --dirstat --exclude= --exit-code --extended-regexp --find-copies \
    --find-copies-harder --find-object= --find-renames --first-parent --fixed-strings --follow --format= --full-diff \
    --full-history --full-index --function-context --graph --grep= --grep-reflog= --histogram --ignore-all-space \
    --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change --indent-heuristic \
    --inter-hunk-context= --invert-grep --left-only --left-right --line-prefix= --log-size --max-count= --merge-base \
    --merges --minimal --name-only --name-status --no-abbrev --no-abbrev-commit --no-color --no-color-moved \
    --no-decorate --no-ext-diff --no-indent-heuristic --no-merges --no-notes --no-patch --no-prefix --no-renames \
    --no-textconv --no-walk --notes --numstat --oneline --parents --patch --patch-with-stat --patience --perl-regexp \
    --pickaxe-all --pickaxe-regex --pretty --quiet --raw --reflog --regexp-ignore-case --relative --relative-date \
    --remotes --reverse --right-only --shortstat --show-pulls --simplify-by-decoration --since= --skip= --source \
    --staged --stat --submodule --summary --tags --text --topo-order --unified= --until= --walk-reflogs --word-diff \
    --word-diff-regex=";

const CARGO: &str = "-F= -j= -p= -q -r -v --all --all-features --all-targets --bench= --benches --bin= --bins --color= \
    --doc --example= --examples --exclude= --features= --frozen --jobs= --keep-going --lib --locked --message-format= \
    --no-deps --no-default-features --no-fail-fast --no-run --offline --package= --profile= --quiet --release --test= \
    --tests --timings --verbose --workspace";

const fn row(name: &'static str, operands: Operands, options: &'static str) -> Program {
    Program { name, operands, options }
}

#[rustfmt::skip] // one row per program
pub(super) const PROGRAMS: &[Program] = &[
    row("[", Any, TEST),
    row("b2sum", Any, SUMS),
    row("base64", Any, "-d -i -w= --decode --ignore-garbage --wrap="),
    row("basename", Any, "-a -s= -z --multiple --suffix= --zero"),
    row("cargo", AtMost(0), "-V --list --version"),
    row("cargo bench", Any, CARGO),
    row("cargo build", Any, CARGO),
    row("cargo check", Any, CARGO),
    row("cargo clippy", AtMost(0), CARGO),
    row("cargo doc", Any, CARGO),
    row("cargo fmt", Any, "-p= -q -v --all --check --package= --quiet --verbose"),
    row("cargo metadata", Any, "-q -v --all-features --format-version= --locked --no-default-features --no-deps \
        --offline"),
    row("cargo test", Any, CARGO),
    row("cargo tree", Any, "-d -e= -i= -p= --all-features --depth= --duplicates --edges= --invert= --package= \
        --prefix= --workspace"),
    row("cat", Any, "-A -E -T -b -e -n -s -t -u -v --number --number-nonblank --show-all --show-ends --show-tabs \
        --squeeze-blank"),
    row("cd", Any, "-L -P"),
    row("cmp", Any, "-b -i= -l -n= -s --bytes= --ignore-initial= --print-bytes --quiet --silent --verbose"),
    row("column", Any, "-J -N= -c= -o= -s= -t -x --columns= --fillrows --json --output-separator= --separator= \
        --table"),
    row("comm", Any, "-1 -2 -3 -z --check-order --nocheck-order --output-delimiter= --total --zero-terminated"),
    row("cp", Any, "-H -L -P -R -a -d -i -n -p -r -u -v -x --archive --interactive --no-clobber --recursive --update \
        --verbose"),
    row("curl", WEB, "-4 -6 -I -L -N -S -V -f -i -m= -s -v --compressed --connect-timeout= --fail --fail-with-body \
        --head --http1.1 --http2 --include --ipv4 --ipv6 --location --max-filesize= --max-redirs= --max-time= \
        --no-buffer --no-progress-meter --progress-bar --retry= --retry-delay= --retry-max-time= --show-error --silent \
        --verbose --version"),
    row("cut", Any, "-b= -c= -d= -f= -n -s -z --bytes= --characters= --complement --delimiter= --fields= \
        --only-delimited --output-delimiter="),
    row("date", Beginning(&["+"]), "-I -R -d= -r= -u --date= --iso-8601 --reference= --rfc-3339= --rfc-email \
        --universal --utc"),
    row("dd", AtMost(0), ""),
    row("df", Any, "-B= -H -P -T -a -h -i -k -l -t= -x= --all --human-readable --inodes --local --portability \
        --print-type --si --total --type="),
    row("diff", Any, "-B -C= -E -L= -N -U= -W= -Z -a -b -c -d -e -i -n -p -q -r -s -t -u -w -x= -y --brief --color \
        --exclude= --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --label= --minimal \
        --new-file --normal --recursive --report-identical-files --show-c-function --side-by-side --strip-trailing-cr \
        --text --unified --width="),
    row("dirname", Any, "-z --zero"),
    row("du", Any, "-B= -H -L -P -S -a -b -c -d= -h -k -l -m -s -t= -x --all --apparent-size --block-size= --bytes \
        --exclude= --human-readable --max-depth= --si --summarize --threshold= --time --total"),
    row("echo", Any, "*"),
    row("egrep", Any, GREP),
    row("expand", Any, "-i -t= --initial --tabs="),
    row("false", Any, "*"),
    row("fd", Any, "-0 -1 -E= -F -H -I -L -S= -a -d= -e= -g -i -p -q -s -t= -u --absolute-path --base-directory= \
        --color= --exclude= --extension= --fixed-strings --follow --full-path --glob --hidden --ignore-case \
        --max-depth= --max-results= --min-depth= --no-ignore --print0 --quiet --size= --type="),
    row("fgrep", Any, GREP),
    row("file", Any, "-0 -L -b -h -i -k -s --brief --dereference --keep-going --mime --mime-encoding --mime-type"),
    row("find", Any, "-H -L -P -a -amin= -and -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -empty \
        -executable -false -follow -fstype= -gid= -group= -ilname= -iname= -inum= -ipath= -iregex= -links= -lname= -ls \
        -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer= -newermt= -nogroup -noleaf -not -nouser -o -or \
        -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -samefile= -size= -true \
        -type= -uid= -user= -wholename= -writable -xdev -xtype="),
    row("fmt", Any, "-c -p= -s -t -u -w= --prefix= --split-only --uniform-spacing --width="),
    row("fold", Any, "-b -s -w= --bytes --spaces --width="),
    row("git", AtMost(0), "-P --no-optional-locks --no-pager --version"),
    row("git add", Any, "-A -N -n -u -v --all --dry-run --ignore-errors --intent-to-add --no-all --refresh --update \
        --verbose"),
    row("git blame", Any, "-C -L= -M -b -c -e -f -l -n -p -s -t -w --abbrev= --color-by-age --date= --line-porcelain \
        --porcelain --root --show-email --show-name --show-number"),
    row("git branch", Names, "-a -i -l -q -r -v -vv --abbrev --all --color --contains --format= --ignore-case --list \
        --merged --no-abbrev --no-color --no-contains --no-merged --points-at= --quiet --remotes --show-current \
        --sort= --verbose"),
    row("git cat-file", Any, "-e -p -s -t"),
    row("git commit", Any, "-a -m= -q -s -v --all --allow-empty --dry-run --message= --no-edit --quiet --short \
        --signoff --status --verbose"),
    row("git describe", Any, "--abbrev= --all --always --candidates= --contains --dirty --exact-match --first-parent \
        --long --match= --tags"),
    row("git diff", Any, GIT_LOG),
    row("git fetch", Names, "-a -n -q -t -v --all --append --deepen= --depth= --dry-run --no-tags --quiet --tags \
        --unshallow --verbose"),
    row("git grep", Any, "-A= -B= -C= -E -F -G -H -I -L -P -W -a -c -e= -h -i -l -m= -n -o -p -q -v -w -z -# \
        --all-match --and --break --cached --color --count --extended-regexp --files-with-matches --fixed-strings \
        --function-context --heading --ignore-case --line-number --max-count= --max-depth= --name-only --no-color \
        --no-index --not --only-matching --or --perl-regexp --quiet --show-function --text --untracked --word-regexp"),
    row("git log", Any, GIT_LOG),
    row("git ls-files", Any, "-c -d -f -i -k -m -o -s -t -u -v -x= -z --abbrev --cached --deleted --directory --eol \
        --error-unmatch --exclude= --exclude-standard --full-name --ignored --killed --modified --others --stage \
        --unmerged"),
    row("git ls-tree", Any, "-d -l -r -t -z --abbrev --format= --full-name --full-tree --long --name-only \
        --name-status --object-only"),
    row("git merge-base", Any, "-a --all --fork-point --independent --is-ancestor --octopus"),
    row("git pull", Names, "-n -q -v --ff --ff-only --no-ff --no-rebase --no-tags --quiet --stat --tags --verbose"),
    row("git push", Names, "-n -q -u -v --dry-run --follow-tags --no-progress --porcelain --progress --quiet \
        --set-upstream --verbose"),
    row("git reflog", AtMost(0), "-# --date --format --max-count --oneline --pretty"),
    row("git remote", AtMost(0), "-v --verbose"),
    row("git rev-list", Any, GIT_LOG),
    row("git rev-parse", Any, "-q --abbrev-ref --absolute-git-dir --all --branches --git-common-dir --git-dir \
        --is-bare-repository --is-inside-git-dir --is-inside-work-tree --quiet --remotes --short --show-cdup \
        --show-prefix --show-toplevel --symbolic-full-name --tags --verify"),
    row("git shortlog", Any, "-c -e -n -s -w --all --author= --committer --email --format= --group= --no-merges \
        --numbered --since= --summary --until="),
    row("git show", Any, GIT_LOG),
    row("git stash", AtMost(0), ""),
    row("git stash list", Any, GIT_LOG),
    row("git stash show", Any, GIT_LOG),
    row("git status", Any, "-b -s -u -v -z --ahead-behind --branch --column --ignore-submodules --ignored --long \
        --no-ahead-behind --no-renames --porcelain --renames --short --show-stash --untracked-files --verbose"),
    row("git switch", Names, "-c= -q --create= --no-track --quiet --track"),
    row("git tag", Names, "-i -l -n --color --column --contains --format= --ignore-case --list --merged --no-column \
        --no-contains --no-merged --points-at= --sort="),
    row("go", AtMost(0), ""),
    row("go build", Any, "-race -v -x"),
    row("go list", Any, "-deps -f= -json -m -test -u"),
    row("go test", Any, "-bench= -benchmem -count= -cover -failfast -json -parallel= -race -run= -short -skip= \
        -timeout= -v"),
    row("go version", AtMost(0), ""),
    row("go vet", Any, "-json -v"),
    row("grep", Any, GREP),
    row("head", Any, "-# -c= -n= -q -v -z --bytes= --lines= --quiet --silent --verbose --zero-terminated"),
    row("hexdump", Any, "-C -b -c -d -e= -n= -o -s= -v -x --canonical --length= --no-squeezing --skip="),
    row("hostname", AtMost(0), "-A -I -d -f -i -s --fqdn --short"),
    row("id", Any, "-G -Z -a -g -n -r -u -z --group --groups --name --real --user"),
    row("join", Any, "-1= -2= -a= -e= -i -j= -o= -t= -v= -z --check-order --header --nocheck-order"),
    row("jq", Any, "-C -M -R -S -a -c -e -j -n -r -s --ascii-output --color-output --compact-output --exit-status \
        --join-output --monochrome-output --null-input --raw-input --raw-output --slurp --sort-keys --tab"),
    row("ls", Any, "-1 -A -B -C -F -G -H -I= -L -N -Q -R -S -T= -U -X -Z -a -b -c -d -f -g -h -i -k -l -m -n -o -p -q \
        -r -s -t -u -v -w= -x --all --almost-all --author --block-size= --classify --color --dereference --directory \
        --escape --file-type --format= --full-time --group-directories-first --hide= --human-readable --hyperlink \
        --ignore= --indicator-style= --inode --literal --no-group --numeric-uid-gid --quote-name --recursive --reverse \
        --show-control-chars --si --size --sort= --time= --time-style= --width= --zero"),
    row("man", Any, "-a -f -k -s= -w --all --apropos --path --sections= --whatis --where"),
    row("md5sum", Any, SUMS),
    row("mkdir", Any, "-p -v --parents --verbose"),
    row("mv", Any, "-i -n -u -v --interactive --no-clobber --update --verbose"),
    row("nl", Any, "-b= -f= -h= -i= -n= -p -s= -v= -w="),
    row("od", Any, "-A= -N= -S= -a -b -c -d -f -i -j= -l -o -s -t= -v -w -x --address-radix= --format= --read-bytes= \
        --skip-bytes="),
    row("paste", Any, "-d= -s -z --delimiters= --serial --zero-terminated"),
    row("printf", Any, ""),
    row("ps", Any, "-A -C= -F -L -M -T -a -d -e -f -g= -j -l -m -o= -p= -t= -u= -w -x -y --format= --forest \
        --no-headers --pid= --ppid= --sort= --user="),
    row("pwd", Any, "-L -P --logical --physical"),
    row("readlink", Any, "-e -f -m -n -q -s -v -z --canonicalize --canonicalize-existing --canonicalize-missing \
        --no-newline"),
    row("realpath", Any, "-L -P -e -m -q -s -z --canonicalize-existing --canonicalize-missing --relative-base= \
        --relative-to= --strip"),
    row("rev", Any, ""),
    row("rg", Any, "-# -. -0 -A= -B= -C= -F -H -I -L -M= -N -P -S -T= -U -a -b -c -e= -f= -g= -h -i -j= -l -m= -n -o \
        -p -q -r= -s -t= -u -v -w -x --after-context= --before-context= --color= --column --context= --count \
        --count-matches --files --files-with-matches --files-without-match --fixed-strings --follow --glob= --heading \
        --hidden --iglob= --ignore-case --invert-match --json --line-number --max-columns= --max-count= --max-depth= \
        --multiline --no-filename --no-heading --no-ignore --no-line-number --no-messages --null --only-matching \
        --passthru --pcre2 --pretty --quiet --regexp= --replace= --smart-case --sort= --sortr= --stats --text --trim \
        --type= --type-list --type-not= --vimgrep --with-filename --word-regexp"),
    row("rm", Any, "-d -f -i -v --dir --force --interactive --verbose"),
    row("rsync", Local, "-D -H -P -a -c -g -h -i -l -n -o -p -q -r -t -u -v -x -z --archive --checksum --compress \
        --dry-run --exclude= --human-readable --include= --itemize-changes --partial --progress --quiet --recursive \
        --stats --update --verbose"),
    row("seq", Any, "-f= -s= -w -# --equal-width --format= --separator="),
    row("sha1sum", Any, SUMS),
    row("sha256sum", Any, SUMS),
    row("sha512sum", Any, SUMS),
    row("sleep", Any, ""),
    row("sort", Any, "-C -M -R -V -b -c -d -f -g -h -i -k= -m -n -r -s -t= -u -z --check --dictionary-order \
        --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key= \
        --merge --month-sort --numeric-sort --parallel= --random-sort --reverse --sort= --stable --unique \
        --version-sort --zero-terminated"),
    row("stat", Any, "-L -c= -f -t --dereference --file-system --format= --printf= --terse"),
    row("strings", Any, "-a -e= -f -n= -o -t= -w --all --bytes= --encoding= --print-file-name --radix="),
    row("tac", Any, "-b -r -s= --before --regex --separator="),
    row("tail", Any, "-# -F -c= -f -n= -q -s= -v -z --bytes= --follow --lines= --pid= --quiet --retry --silent \
        --sleep-interval= --verbose --zero-terminated"),
    row("tar", AtMost(0), ""),
    row("tee", AtMost(0), "-a -i -p --append --ignore-interrupts"),
    row("test", Any, TEST),
    row("touch", Any, "-a -c -d= -h -m -r= -t= --date= --no-create --no-dereference --reference= --time="),
    row("tr", Any, "-C -c -d -s -t --complement --delete --squeeze-repeats --truncate-set1"),
    row("tree", Any, "-A -C -D -F -I= -L= -N -P= -Q -S -a -d -f -g -h -i -l -n -p -q -r -s -t -u -v -x --charset= \
        --dirsfirst --du --filelimit= --filesfirst --gitignore --ignore-case --inodes --noreport --prune --si --sort="),
    row("true", Any, "*"),
    row("type", Any, "-P -a -f -p -t"),
    row("uname", Any, "-a -i -m -n -o -p -r -s -v --all --machine --nodename --operating-system --processor"),
    row("unexpand", Any, "-a -t= --all --first-only --tabs="),
    row("uniq", AtMost(1), "-# -D -c -d -f= -i -s= -u -w= -z --all-repeated --check-chars= --count --group \
        --ignore-case --repeated --skip-chars= --skip-fields= --unique --zero-terminated"),
    row("wc", Any, "-L -c -l -m -w --bytes --chars --lines --max-line-length --total= --words"),
    row("wget", WEB, "-4 -6 -T= -nv -q -t= --no-verbose --quiet --spider --timeout= --tries= --version"),
    row("which", Any, "-a -s --all"),
    row("whoami", AtMost(0), ""),
    row("xxd", AtMost(1), "-C -E -b -c= -d -e -g= -i -l= -o= -p -ps -s= -u"),
    row("yq", Any, "-C -M -P -e -j -n -r --colors --exit-status --no-colors --null-input --prettyPrint --unwrapScalar"),
];
