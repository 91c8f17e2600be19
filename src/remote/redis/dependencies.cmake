# Only its headers are needed: its functions are looked up at run time.
find_path(HIREDIS_INCLUDE_DIR hiredis/hiredis.h REQUIRED)
